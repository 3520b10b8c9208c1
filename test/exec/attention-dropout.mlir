// Attention that drops weights, forward and backward: batch over micro-batches and dp, groups of heads unevenly over tp, stages. Masks that begin anew in a box, a
// micro-batch or a stage, or that backward draws otherwise, give other numbers than the serial step.
module attributes {exec.steps = 2 : i64,
    exec.passes = "hpc-build-gradients,hpc-clip-gradients,hpc-append-optimizer{optimizer=sgd}",
    exec.meshes = ["mb=1:time, dp=1:data, tp=1:tensor", "mb=1:time, dp=2:data, tp=2:tensor", "mb=3:time, dp=1:data, tp=3:tensor", "mb=2:time, dp=2:data, tp=1:tensor"],
    exec.pipelines = ["pp=1", "pp=2"]} {
  func.func @main(%x: tensor<6x5x4xf32> {nn.name = "x", dist.seed = #dist.sharding<"[6@(mb, dp), 5, 4]">},
                  %step: tensor<f64> {nn.step_scalar = "step"}, %seed: tensor<f64> {nn.step_scalar = "seed"}) -> (tensor<f32> {nn.name = "loss"}) {
    %w1 = nn.parameter "w1" stored <file = "w", bytes = 384, hashes = [0]> {dist.seed = #dist.sharding<"[4, (3@tp, 8)]">} : tensor<4x24xf32> loc("w1")
    %w2 = nn.parameter "w2" stored <file = "w", bytes = 192, hashes = [0]> : tensor<4x12xf32> loc("w2")
    %w3 = nn.parameter "w3" stored <file = "w", bytes = 384, hashes = [0]> : tensor<24x4xf32> loc("w3")
    %q0 = nn.matmul %x, %w1 : tensor<6x5x4xf32>, tensor<4x24xf32> -> tensor<6x5x24xf32> loc("q")
    %q1 = nn.reshape %q0 : tensor<6x5x24xf32> -> tensor<6x5x6x4xf32> loc("heads")
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<6x5x6x4xf32> -> tensor<6x6x5x4xf32> loc("heads")
    %k0 = nn.matmul %x, %w2 : tensor<6x5x4xf32>, tensor<4x12xf32> -> tensor<6x5x12xf32> loc("k")
    %k1 = nn.reshape %k0 : tensor<6x5x12xf32> -> tensor<6x5x3x4xf32> loc("groups")
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<6x5x3x4xf32> -> tensor<6x3x5x4xf32> loc("groups")
    %o = nn.attention %q, %k, %k dropout %step, %seed : tensor<f64>, tensor<f64> {scale = 0.7 : f64, causal_offset = 0 : i64, site = 1 : i64, rate = 3.0e-1 : f64}
        : tensor<6x6x5x4xf32>, tensor<6x3x5x4xf32>, tensor<6x3x5x4xf32> -> tensor<6x6x5x4xf32> loc("attention")
    %ot = nn.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : tensor<6x6x5x4xf32> -> tensor<6x5x6x4xf32> loc("merge")
    %om = nn.reshape %ot : tensor<6x5x6x4xf32> -> tensor<6x5x24xf32> loc("merge")
    %y = nn.matmul %om, %w3 : tensor<6x5x24xf32>, tensor<24x4xf32> -> tensor<6x5x4xf32> loc("proj")
    %e = nn.add %x, %y : tensor<6x5x4xf32>, tensor<6x5x4xf32> -> tensor<6x5x4xf32> loc("residual")
    %ee = nn.mul %e, %e : tensor<6x5x4xf32>, tensor<6x5x4xf32> -> tensor<6x5x4xf32> loc("loss")
    %sums = nn.reduce sum %ee {axes = array<i64: 0, 1, 2>} : tensor<6x5x4xf32> -> tensor<1x1x1xf32> loc("loss")
    %sum = nn.reshape %sums : tensor<1x1x1xf32> -> tensor<f32> loc("loss")
    %count = nn.constant dense<120.0> : tensor<f32> : tensor<f32> loc("loss")
    %loss = nn.div %sum, %count : tensor<f32>, tensor<f32> -> tensor<f32> loc("loss")
    return %loss : tensor<f32>
  }
}
