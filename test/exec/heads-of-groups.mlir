// The heads of each group are cut, and every rank has the keys and values of all groups: more ranks than groups, and more than heads of a group.
module attributes {exec.meshes = ["tp=2:tensor", "tp=3:tensor", "tp=4:tensor"]} {
  func.func @main(%x: tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
    %wq = nn.parameter "q" stored <file = "w", bytes = 240, hashes = [0]> {dist.seed = #dist.sharding<"[5, (2, 3@tp, 2)]">} : tensor<5x12xf32>
    %wk = nn.parameter "k" stored <file = "w", bytes = 80, hashes = [0]> : tensor<5x4xf32>
    %wo = nn.parameter "o" stored <file = "w", bytes = 240, hashes = [0]> {dist.seed = #dist.sharding<"[(2, 3@tp, 2), 5]">} : tensor<12x5xf32>
    %q0 = nn.matmul %x, %wq : tensor<2x4x5xf32>, tensor<5x12xf32> -> tensor<2x4x12xf32>
    %q1 = nn.reshape %q0 : tensor<2x4x12xf32> -> tensor<2x4x6x2xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x4x6x2xf32> -> tensor<2x6x4x2xf32>
    %k0 = nn.matmul %x, %wk : tensor<2x4x5xf32>, tensor<5x4xf32> -> tensor<2x4x4xf32>
    %k1 = nn.reshape %k0 : tensor<2x4x4xf32> -> tensor<2x4x2x2xf32>
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x4x2x2xf32> -> tensor<2x2x4x2xf32>
    %a = nn.attention %q, %k, %k {scale = 0.7 : f64, causal_offset = 0 : i64} : tensor<2x6x4x2xf32>, tensor<2x2x4x2xf32>, tensor<2x2x4x2xf32> -> tensor<2x6x4x2xf32>
    %t = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x4x2xf32> -> tensor<2x4x6x2xf32>
    %r = nn.reshape %t : tensor<2x4x6x2xf32> -> tensor<2x4x12xf32>
    %y = nn.matmul %r, %wo : tensor<2x4x12xf32>, tensor<12x5xf32> -> tensor<2x4x5xf32>
    return %y : tensor<2x4x5xf32>
  }
}
