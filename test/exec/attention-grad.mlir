// The gradient of causal attention, heads and groups of heads cut unevenly, the batch too: nothing is exchanged inside, and what a group's heads give its keys is
// summed on the rank that has them.
module attributes {exec.meshes = ["mb=1:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=3:tensor", "mb=1:time, dp=2:data, tp=2:tensor", "mb=3:time, dp=1:data, tp=2:tensor"]} {
  func.func @main(%q: tensor<3x6x4x2xf32> {dist.seed = #dist.sharding<"[3@(mb, dp), (3@tp, 2), 4, 2]">}, %k: tensor<3x3x4x2xf32>, %v: tensor<3x3x4x5xf32>, %g: tensor<3x6x4x5xf32>)
      -> (tensor<3x6x4x2xf32>, tensor<3x3x4x2xf32>, tensor<3x3x4x5xf32>) {
    %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %g {scale = 0.7 : f64, causal_offset = 0 : i64} : tensor<3x6x4x2xf32>, tensor<3x3x4x2xf32>, tensor<3x3x4x5xf32>, tensor<3x6x4x5xf32>
        -> tensor<3x6x4x2xf32>, tensor<3x3x4x2xf32>, tensor<3x3x4x5xf32>
    return %dq, %dk, %dv : tensor<3x6x4x2xf32>, tensor<3x3x4x2xf32>, tensor<3x3x4x5xf32>
  }
}
