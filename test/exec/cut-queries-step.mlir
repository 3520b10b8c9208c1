// A training step whose rows are cut over tp: keys and values are gathered for attention, and their gradients are reduce-scattered. The second layer drops weights.
module attributes {exec.steps = 2 : i64,
    exec.passes = "hpc-build-gradients,hpc-clip-gradients,hpc-append-optimizer{optimizer=sgd}",
    exec.meshes = ["mb=1:time, dp=1:data, tp=3:tensor", "mb=2:time, dp=2:data, tp=2:tensor"],
    exec.pipelines = ["pp=1", "pp=2"]} {
  func.func @main(%x: tensor<4x5x4xf32> {nn.name = "x", dist.seed = #dist.sharding<"[4@(mb, dp), 5@tp, 4]">},
                  %step: tensor<f64> {nn.step_scalar = "step"}, %seed: tensor<f64> {nn.step_scalar = "seed"}) -> (tensor<f32> {nn.name = "loss"}) {
    %w1 = nn.parameter "w1" stored <file = "w", bytes = 128, hashes = [0]> {dist.seed = #dist.sharding<"[4, 8]">} : tensor<4x8xf32> loc("w1")
    %w2 = nn.parameter "w2" stored <file = "w", bytes = 64, hashes = [0]> {dist.seed = #dist.sharding<"[4, 4]">} : tensor<4x4xf32> loc("w2")
    %w3 = nn.parameter "w3" stored <file = "w", bytes = 128, hashes = [0]> {dist.seed = #dist.sharding<"[8, 4]">} : tensor<8x4xf32> loc("w3")
    %q0 = nn.matmul %x, %w1 : tensor<4x5x4xf32>, tensor<4x8xf32> -> tensor<4x5x8xf32> loc("q")
    %q1 = nn.reshape %q0 : tensor<4x5x8xf32> -> tensor<4x5x2x4xf32> loc("heads")
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x5x2x4xf32> -> tensor<4x2x5x4xf32> loc("heads")
    %k0 = nn.matmul %x, %w2 {dist.seed = #dist.sharding<"[4, 5@tp, 4]">} : tensor<4x5x4xf32>, tensor<4x4xf32> -> tensor<4x5x4xf32> loc("k")
    %k = nn.reshape %k0 : tensor<4x5x4xf32> -> tensor<4x1x5x4xf32> loc("groups")
    %o = nn.attention %q, %k, %k {scale = 0.7 : f64, causal_offset = 0 : i64, dist.seed = #dist.sharding<"[4, 2, 5@tp, 4]">}
        : tensor<4x2x5x4xf32>, tensor<4x1x5x4xf32>, tensor<4x1x5x4xf32> -> tensor<4x2x5x4xf32> loc("attention")
    %ot = nn.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x2x5x4xf32> -> tensor<4x5x2x4xf32> loc("merge")
    %om = nn.reshape %ot : tensor<4x5x2x4xf32> -> tensor<4x5x8xf32> loc("merge")
    %y = nn.matmul %om, %w3 : tensor<4x5x8xf32>, tensor<8x4xf32> -> tensor<4x5x4xf32> loc("proj")
    %e = nn.add %x, %y : tensor<4x5x4xf32>, tensor<4x5x4xf32> -> tensor<4x5x4xf32> loc("residual")
    %h = nn.reshape %e {dist.seed = #dist.sharding<"[4, 1, 5@tp, 4]">} : tensor<4x5x4xf32> -> tensor<4x1x5x4xf32> loc("second")
    %d = nn.attention %h, %h, %h dropout %step, %seed : tensor<f64>, tensor<f64> {scale = 0.5 : f64, causal_offset = 0 : i64, site = 1 : i64, rate = 3.0e-1 : f64,
        dist.seed = #dist.sharding<"[4, 1, 5@tp, 4]">} : tensor<4x1x5x4xf32>, tensor<4x1x5x4xf32>, tensor<4x1x5x4xf32> -> tensor<4x1x5x4xf32> loc("attention2")
    %ee = nn.mul %d, %d : tensor<4x1x5x4xf32>, tensor<4x1x5x4xf32> -> tensor<4x1x5x4xf32> loc("loss")
    %sums = nn.reduce sum %ee {axes = array<i64: 0, 1, 2, 3>} : tensor<4x1x5x4xf32> -> tensor<1x1x1x1xf32> loc("loss")
    %sum = nn.reshape %sums : tensor<1x1x1x1xf32> -> tensor<f32> loc("loss")
    %count = nn.constant dense<80.0> : tensor<f32> : tensor<f32> loc("loss")
    %loss = nn.div %sum, %count : tensor<f32>, tensor<f32> -> tensor<f32> loc("loss")
    return %loss : tensor<f32>
  }
}
