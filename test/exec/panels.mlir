// A layer in 2-D, its gradients, and a second reader of its input, in panels: Cannon's skew where the mesh is square, parts of what is gathered where
// it is not. Seven and five divide into nothing; one row of ranks and one column have panels of one operand.
module attributes {exec.pipelines = ["panels=1"], exec.meshes = ["x=2:data, y=2:tensor", "x=3:data, y=3:tensor", "x=2:data, y=3:tensor", "x=3:data, y=2:tensor", "x=1:data, y=3:tensor",
    "x=3:data, y=1:tensor"]} {
  func.func @main(%x: tensor<6x7xf32> {dist.seed = #dist.sharding<"[6@x, 7@y]">}) -> (tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x7xf32>, tensor<7x5xf32>) {
    %w = nn.parameter "w" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[7@x, 5@y]">} : tensor<7x5xf32>
    %v = nn.parameter "v" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[7@x, 5@y]">} : tensor<7x5xf32>
    %0 = nn.matmul %x, %w {dist.seed = #dist.sharding<"[6@x, 5@y]">} : tensor<6x7xf32>, tensor<7x5xf32> -> tensor<6x5xf32>
    %y = nn.tanh %0 : tensor<6x5xf32> -> tensor<6x5xf32>
    %1 = nn.matmul %x, %v {dist.seed = #dist.sharding<"[6@x, 5@y]">} : tensor<6x7xf32>, tensor<7x5xf32> -> tensor<6x5xf32>
    %z = nn.tanh %1 : tensor<6x5xf32> -> tensor<6x5xf32>
    %dxw = nn.matmul %y, %w {transpose_rhs} : tensor<6x5xf32>, tensor<7x5xf32> -> tensor<6x7xf32>
    %dxv = nn.matmul %z, %v {transpose_rhs} : tensor<6x5xf32>, tensor<7x5xf32> -> tensor<6x7xf32>
    %dx = nn.add %dxw, %dxv {dist.seed = #dist.sharding<"[6@x, 7@y]">} : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>
    %dws = nn.matmul %x, %y {transpose_lhs} : tensor<6x7xf32>, tensor<6x5xf32> -> tensor<7x5xf32>
    %dw = nn.tanh %dws {dist.seed = #dist.sharding<"[7@x, 5@y]">} : tensor<7x5xf32> -> tensor<7x5xf32>
    return %y, %z, %dx, %dw : tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x7xf32>, tensor<7x5xf32>
  }
}
