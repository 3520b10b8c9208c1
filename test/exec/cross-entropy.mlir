// Cross entropy over a cut, uneven vocabulary, and its gradient as hpc-build-gradients spells it: the maximum, the sum and the label's logit cross ranks, the logits
// do not. Label 7 is ignored. If a rank counts its padding, or finds a label that another one holds, losses differ.
module attributes {exec.meshes = ["mb=1:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=2:data, tp=3:tensor", "mb=3:time, dp=1:data, tp=2:tensor", "mb=2:time, dp=2:data, tp=1:tensor"]} {
  func.func @main(%x: tensor<3x2x5xf32> {dist.seed = #dist.sharding<"[3@(mb, dp), 2, 5]">}, %ids: tensor<3x2xi64> {dist.seed = #dist.sharding<"[3@(mb, dp), 2]">})
      -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<f32>, tensor<7x5xf32>) {
    %wte = nn.parameter "wte" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %eight = nn.constant dense<8> : tensor<i64> : tensor<i64>
    %labels = nn.mod %ids, %eight : tensor<3x2xi64>, tensor<i64> -> tensor<3x2xi64>
    %logits = nn.matmul %x, %wte {transpose_rhs} : tensor<3x2x5xf32>, tensor<7x5xf32> -> tensor<3x2x7xf32>
    %loss, %top, %share = nn.cross_entropy %logits, %labels {ignore_index = 7 : i64} : tensor<3x2x7xf32>, tensor<3x2xi64> -> tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
    %s = nn.reduce sum %loss {axes = array<i64: 0, 1>} : tensor<3x2xf32> -> tensor<1x1xf32>
    %sum = nn.reshape %s : tensor<1x1xf32> -> tensor<f32>
    %row = nn.reshape %top : tensor<3x2xf32> -> tensor<3x2x1xf32>
    %d = nn.sub %logits, %row : tensor<3x2x7xf32>, tensor<3x2x1xf32> -> tensor<3x2x7xf32>
    %terms = nn.exp %d : tensor<3x2x7xf32> -> tensor<3x2x7xf32>
    %each = nn.reshape %share : tensor<3x2xf32> -> tensor<3x2x1xf32>
    %p = nn.mul %terms, %each : tensor<3x2x7xf32>, tensor<3x2x1xf32> -> tensor<3x2x7xf32>
    %classes = nn.iota {dim = 0 : i64} : tensor<7xi64>
    %label = nn.reshape %labels : tensor<3x2xi64> -> tensor<3x2x1xi64>
    %is = nn.compare eq %classes, %label : tensor<7xi64>, tensor<3x2x1xi64> -> tensor<3x2x7xi1>
    %one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %hot = nn.select %is, %one, %zero : tensor<3x2x7xi1>, tensor<f32>, tensor<f32> -> tensor<3x2x7xf32>
    %dlogits = nn.sub %p, %hot : tensor<3x2x7xf32>, tensor<3x2x7xf32> -> tensor<3x2x7xf32>
    %rows = nn.reshape %dlogits : tensor<3x2x7xf32> -> tensor<6x7xf32>
    %inputs = nn.reshape %x : tensor<3x2x5xf32> -> tensor<6x5xf32>
    %dw = nn.matmul %rows, %inputs {transpose_lhs} : tensor<6x7xf32>, tensor<6x5xf32> -> tensor<7x5xf32>
    return %loss, %top, %share, %sum, %dw : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<f32>, tensor<7x5xf32>
  }
}
