// The gradient of a table that is cut by rows, of ids that are cut by batch: every rank adds to the rows that it holds, terms of other ranks and micro-batches come
// as sums. Ids count from the end where they are negative. A row that is added to twice, or by its padding, differs.
module attributes {exec.meshes = ["mb=1:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=2:data, tp=3:tensor", "mb=3:time, dp=1:data, tp=4:tensor", "mb=2:time, dp=2:data, tp=2:tensor"]} {
  func.func @main(%x: tensor<3x2x5xf32> {dist.seed = #dist.sharding<"[3@(mb, dp), 2, 5]">}, %ids: tensor<3x2xi64> {dist.seed = #dist.sharding<"[3@(mb, dp), 2]">}) -> (tensor<7x5xf32>, tensor<2x5xf32>) {
    %wte = nn.parameter "wte" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %e = nn.embedding %wte, %ids {vocabulary = 7 : i64} : tensor<7x5xf32>, tensor<3x2xi64> -> tensor<3x2x5xf32>
    %g = nn.mul %e, %x : tensor<3x2x5xf32>, tensor<3x2x5xf32> -> tensor<3x2x5xf32>
    %d = nn.embedding_grad %g, %ids {vocabulary = 7 : i64} : tensor<3x2x5xf32>, tensor<3x2xi64> -> tensor<7x5xf32>
    %sum = nn.add %d, %wte : tensor<7x5xf32>, tensor<7x5xf32> -> tensor<7x5xf32>
    %positions = nn.iota {dim = 1 : i64} : tensor<1x2xi64>
    %all = nn.broadcast %positions : tensor<1x2xi64> -> tensor<3x2xi64>
    %p = nn.embedding_grad %g, %all {vocabulary = 2 : i64} : tensor<3x2x5xf32>, tensor<3x2xi64> -> tensor<2x5xf32>
    return %sum, %p : tensor<7x5xf32>, tensor<2x5xf32>
  }
}
