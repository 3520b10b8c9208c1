// A head that sums over the hidden dim, while its readers have the vocabulary in uneven parts over the same axis: a loss, an elementwise op, the caller. If a reader took
// the scattered logits for whole ones, or the other way round, losses differ.
module attributes {exec.meshes = ["mb=1:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=2:data, tp=3:tensor", "mb=3:time, dp=1:data, tp=2:tensor", "mb=2:time, dp=2:data, tp=1:tensor"]} {
  func.func @main(%x: tensor<6x2x5xf32> {dist.seed = #dist.sharding<"[6@(mb, dp), 2, 5]">}, %ids: tensor<6x2xi64> {dist.seed = #dist.sharding<"[6@(mb, dp), 2]">})
      -> (tensor<6x2xf32>, tensor<6x2x7xf32>, tensor<6x2x7xf32>, tensor<7x5xf32>) {
    %wte = nn.parameter "wte" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[7, 5@tp]">} : tensor<7x5xf32>
    %seven = nn.constant dense<7> : tensor<i64> : tensor<i64>
    %labels = nn.mod %ids, %seven : tensor<6x2xi64>, tensor<i64> -> tensor<6x2xi64>
    %logits = nn.matmul %x, %wte {transpose_rhs, dist.seed = #dist.seed<"[6?, 2?, 7]">, dist.read_seed = #dist.seed<"[6?, 2?, 7@tp]">} : tensor<6x2x5xf32>, tensor<7x5xf32> -> tensor<6x2x7xf32>
    %loss, %top, %share = nn.cross_entropy %logits, %labels : tensor<6x2x7xf32>, tensor<6x2xi64> -> tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>
    %e = nn.exp %logits : tensor<6x2x7xf32> -> tensor<6x2x7xf32>
    %rows = nn.reshape %e : tensor<6x2x7xf32> -> tensor<12x7xf32>
    %inputs = nn.reshape %x : tensor<6x2x5xf32> -> tensor<12x5xf32>
    %dw = nn.matmul %rows, %inputs {transpose_lhs, dist.seed = #dist.seed<"[7?, 5@tp]">} : tensor<12x7xf32>, tensor<12x5xf32> -> tensor<7x5xf32>
    return %loss, %logits, %e, %dw : tensor<6x2xf32>, tensor<6x2x7xf32>, tensor<6x2x7xf32>, tensor<7x5xf32>
  }
}
