// Operands that arrive cut differently: along other dims, over other axes, over two axes in both orders. The difference is
// resharded, whatever it takes.
module attributes {exec.meshes = ["x=2:tensor, y=2:tensor", "x=3:tensor, y=2:tensor", "x=1:tensor, y=3:tensor"]} {
  func.func @main(%a: tensor<5x6xf32> {dist.seed = #dist.sharding<"[5@x, 6@y]">}, %b: tensor<5x6xf32> {dist.seed = #dist.sharding<"[5@y, 6@x]">},
      %c: tensor<5x6xf32> {dist.seed = #dist.sharding<"[5@(x, y), 6]">}, %d: tensor<5x6xf32> {dist.seed = #dist.sharding<"[5, (2@x, 3@y)]">})
      -> (tensor<5x6xf32>, tensor<5x6xf32>, tensor<6x6xf32>, tensor<5x5xf32>, tensor<5x6xf32>) {
    %0 = nn.add %a, %b : tensor<5x6xf32>, tensor<5x6xf32> -> tensor<5x6xf32>
    %1 = nn.mul %c, %d : tensor<5x6xf32>, tensor<5x6xf32> -> tensor<5x6xf32>
    %2 = nn.matmul %a, %b {transpose_lhs} : tensor<5x6xf32>, tensor<5x6xf32> -> tensor<6x6xf32>
    %3 = nn.matmul %c, %d {transpose_rhs} : tensor<5x6xf32>, tensor<5x6xf32> -> tensor<5x5xf32>
    %4 = nn.matmul %3, %a : tensor<5x5xf32>, tensor<5x6xf32> -> tensor<5x6xf32>
    return %0, %1, %2, %3, %4 : tensor<5x6xf32>, tensor<5x6xf32>, tensor<6x6xf32>, tensor<5x5xf32>, tensor<5x6xf32>
  }
}
