// Steps of a layer whose keys and values lie in rings of 5 rows, of which a step writes two at a position that is often behind them, over their end in some steps. If a row lies elsewhere,
// numbers differ.
module attributes {exec.steps = 5 : i64, exec.meshes = ["mb=1:time, dp=1:data, tp=1:tensor", "mb=1:time, dp=2:data, tp=1:tensor", "mb=1:time, dp=3:data, tp=2:tensor"]} {
  func.func @main(%x: tensor<4x2x12xf32> {nn.name = "x", dist.seed = #dist.sharding<"[4@dp, 2, 12]">}, %position: tensor<i64> {nn.step_scalar = "position", nn.largest = 40 : i64},
                  %k: tensor<4x3x5x4xf32> {nn.state = "cache/k", nn.initial = 0.0 : f64, dist.seed = #dist.sharding<"[4@dp, 3@tp, 5, 4]">},
                  %v: tensor<4x3x5x4xf32> {nn.state = "cache/v", nn.initial = 0.0 : f64, dist.seed = #dist.sharding<"[4@dp, 3@tp, 5, 4]">})
      -> (tensor<4x2x12xf32> {nn.name = "y"}, tensor<4x3x5x4xf32> {nn.writes = "cache/k"}, tensor<4x3x5x4xf32> {nn.writes = "cache/v"}) {
    %r = nn.reshape %x : tensor<4x2x12xf32> -> tensor<4x2x3x4xf32>
    %q = nn.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x2x3x4xf32> -> tensor<4x3x2x4xf32>
    %s = nn.tanh %q : tensor<4x3x2x4xf32> -> tensor<4x3x2x4xf32>
    %kn = nn.update_slice %k, %q, %position {dim = 2 : i64, wraps} : tensor<4x3x5x4xf32>, tensor<4x3x2x4xf32>, tensor<i64> -> tensor<4x3x5x4xf32>
    %vn = nn.update_slice %v, %s, %position {dim = 2 : i64, wraps} : tensor<4x3x5x4xf32>, tensor<4x3x2x4xf32>, tensor<i64> -> tensor<4x3x5x4xf32>
    %a = nn.attention %q, %kn, %vn {scale = 0.5 : f64} : tensor<4x3x2x4xf32>, tensor<4x3x5x4xf32>, tensor<4x3x5x4xf32> -> tensor<4x3x2x4xf32>
    %t = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x3x2x4xf32> -> tensor<4x2x3x4xf32>
    %y = nn.reshape %t : tensor<4x2x3x4xf32> -> tensor<4x2x12xf32>
    return %y, %kn, %vn : tensor<4x2x12xf32>, tensor<4x3x5x4xf32>, tensor<4x3x5x4xf32>
  }
}
