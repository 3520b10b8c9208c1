// Masks of a training step, forward and backward, whatever is cut: rows over micro-batches and dp, unevenly; columns and heads over
// tp; stages. A mask that counts from the beginning of a box, of a micro-batch or of a stage, that is another in backward, or that
// stays the same from step to step gives other numbers than the serial step.
module attributes {exec.steps = 3 : i64,
    exec.passes = "hpc-build-gradients,hpc-clip-gradients,hpc-append-optimizer{optimizer=sgd}",
    exec.meshes = ["mb=1:time, dp=1:data, tp=1:tensor", "mb=1:time, dp=2:data, tp=2:tensor", "mb=3:time, dp=1:data, tp=3:tensor", "mb=2:time, dp=2:data, tp=1:tensor"],
    exec.pipelines = ["pp=1", "pp=2", "pp=2 schedule=gpipe"]} {
  func.func @main(%x: tensor<6x5x4xf32> {nn.name = "x", dist.seed = #dist.sharding<"[6@(mb, dp), 5, 4]">},
                  %step: tensor<f64> {nn.step_scalar = "step"}, %seed: tensor<f64> {nn.step_scalar = "seed"}) -> (tensor<f32> {nn.name = "loss"}) {
    %w1 = nn.parameter "w1" stored <file = "w", bytes = 192, hashes = [0]> {dist.seed = #dist.sharding<"[4, (3@tp, 4)]">} : tensor<4x12xf32> loc("w1")
    %w2 = nn.parameter "w2" stored <file = "w", bytes = 192, hashes = [0]> : tensor<12x4xf32> loc("w2")
    %w3 = nn.parameter "w3" stored <file = "w", bytes = 112, hashes = [0]> {dist.seed = #dist.sharding<"[4, 7@tp]">} : tensor<4x7xf32> loc("w3")
    %w4 = nn.parameter "w4" stored <file = "w", bytes = 112, hashes = [0]> : tensor<7x4xf32> loc("w4")
    %x0 = nn.dropout %x, %step, %seed {site = 0 : i64, rate = 3.0e-1 : f64} : tensor<6x5x4xf32>, tensor<f64>, tensor<f64> -> tensor<6x5x4xf32> loc("drop0")
    %q = nn.matmul %x0, %w1 : tensor<6x5x4xf32>, tensor<4x12xf32> -> tensor<6x5x12xf32> loc("q")
    %h = nn.reshape %q : tensor<6x5x12xf32> -> tensor<6x5x3x4xf32> loc("heads")
    %t = nn.transpose %h {permutation = array<i64: 0, 2, 1, 3>} : tensor<6x5x3x4xf32> -> tensor<6x3x5x4xf32> loc("heads")
    %s = nn.matmul %t, %t {transpose_rhs} : tensor<6x3x5x4xf32>, tensor<6x3x5x4xf32> -> tensor<6x3x5x5xf32> loc("scores")
    %p = nn.softmax %s : tensor<6x3x5x5xf32> -> tensor<6x3x5x5xf32> loc("softmax")
    %pd = nn.dropout %p, %step, %seed {site = 1 : i64, rate = 3.0e-1 : f64} : tensor<6x3x5x5xf32>, tensor<f64>, tensor<f64> -> tensor<6x3x5x5xf32> loc("drop1")
    %o = nn.matmul %pd, %t : tensor<6x3x5x5xf32>, tensor<6x3x5x4xf32> -> tensor<6x3x5x4xf32> loc("out")
    %ot = nn.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : tensor<6x3x5x4xf32> -> tensor<6x5x3x4xf32> loc("merge")
    %om = nn.reshape %ot : tensor<6x5x3x4xf32> -> tensor<6x5x12xf32> loc("merge")
    %y = nn.matmul %om, %w2 : tensor<6x5x12xf32>, tensor<12x4xf32> -> tensor<6x5x4xf32> loc("proj")
    %yd = nn.dropout %y, %step, %seed {site = 2 : i64, rate = 3.0e-1 : f64} : tensor<6x5x4xf32>, tensor<f64>, tensor<f64> -> tensor<6x5x4xf32> loc("drop2")
    %r = nn.add %x0, %yd : tensor<6x5x4xf32>, tensor<6x5x4xf32> -> tensor<6x5x4xf32> loc("residual")
    %u = nn.matmul %r, %w3 : tensor<6x5x4xf32>, tensor<4x7xf32> -> tensor<6x5x7xf32> loc("fc")
    %ua = nn.tanh %u : tensor<6x5x7xf32> -> tensor<6x5x7xf32> loc("act")
    %ud = nn.dropout %ua, %step, %seed {site = 3 : i64, rate = 3.0e-1 : f64} : tensor<6x5x7xf32>, tensor<f64>, tensor<f64> -> tensor<6x5x7xf32> loc("drop3")
    %v = nn.matmul %ud, %w4 : tensor<6x5x7xf32>, tensor<7x4xf32> -> tensor<6x5x4xf32> loc("fc2")
    %e = nn.add %v, %r : tensor<6x5x4xf32>, tensor<6x5x4xf32> -> tensor<6x5x4xf32> loc("residual2")
    %ee = nn.mul %e, %e : tensor<6x5x4xf32>, tensor<6x5x4xf32> -> tensor<6x5x4xf32> loc("loss")
    %sums = nn.reduce sum %ee {axes = array<i64: 0, 1, 2>} : tensor<6x5x4xf32> -> tensor<1x1x1xf32> loc("loss")
    %sum = nn.reshape %sums : tensor<1x1x1xf32> -> tensor<f32> loc("loss")
    %count = nn.constant dense<120.0> : tensor<f32> : tensor<f32> loc("loss")
    %loss = nn.div %sum, %count : tensor<f32>, tensor<f32> -> tensor<f32> loc("loss")
    return %loss : tensor<f32>
  }
}
