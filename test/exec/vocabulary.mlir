// A tied embedding cut by rows, its table used again as the head, and a log-softmax over the cut, uneven vocabulary: maximum and
// sum over the ranks, with the padding filled.
module attributes {exec.meshes = ["mb=1:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=3:tensor", "mb=3:time, dp=1:data, tp=2:tensor"]} {
  func.func @main(%ids: tensor<3x2xi64> {dist.seed = #dist.sharding<"[3@(mb, dp), 2]">}) -> (tensor<3x2x7xf32>, tensor<3x2x7xf32>, tensor<3x2x1xf32>) {
    %wte = nn.parameter "wte" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %0 = nn.embedding %wte, %ids {vocabulary = 7 : i64} : tensor<7x5xf32>, tensor<3x2xi64> -> tensor<3x2x5xf32>
    %1 = nn.tanh %0 : tensor<3x2x5xf32> -> tensor<3x2x5xf32>
    %2 = nn.matmul %1, %wte {transpose_rhs} : tensor<3x2x5xf32>, tensor<7x5xf32> -> tensor<3x2x7xf32>
    %3 = nn.softmax %2 : tensor<3x2x7xf32> -> tensor<3x2x7xf32>
    %4 = nn.reduce min %2 {axes = array<i64: 2>} : tensor<3x2x7xf32> -> tensor<3x2x1xf32>
    return %2, %3, %4 : tensor<3x2x7xf32>, tensor<3x2x7xf32>, tensor<3x2x1xf32>
  }
}
