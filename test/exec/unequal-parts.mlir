// Parts of one weight, each cut by itself: heads of 2 by 3 query heads, one key and value for all; a rank binds its range of what is stored, or none of it.
module attributes {exec.meshes = ["tp=2:tensor", "tp=3:tensor", "tp=4:tensor", "dp=2:data, tp=2:tensor"]} {
  func.func @main(%x: tensor<2x4x6xf32>) -> tensor<2x4x6xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 240, hashes = [0]> : tensor<6x10xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 40, hashes = [0]> : tensor<10xf32>
    %o = nn.parameter "o" stored <file = "w", bytes = 144, hashes = [0]> {dist.seed = #dist.sharding<"[(3@tp, 2), 6]">} : tensor<6x6xf32>
    %wq = nn.slice %w {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<6x10xf32> -> tensor<6x6xf32>
    %wk = nn.slice %w {starts = array<i64: 0, 6>, steps = array<i64: 1, 1>} : tensor<6x10xf32> -> tensor<6x2xf32>
    %wv = nn.slice %w {starts = array<i64: 0, 8>, steps = array<i64: 1, 1>} : tensor<6x10xf32> -> tensor<6x2xf32>
    %bq = nn.slice %b {starts = array<i64: 0>, steps = array<i64: 1>} : tensor<10xf32> -> tensor<6xf32>
    %q0 = nn.matmul %x, %wq {dist.seed = #dist.sharding<"[2, 4, (3@tp, 2)]">} : tensor<2x4x6xf32>, tensor<6x6xf32> -> tensor<2x4x6xf32>
    %q1 = nn.add %q0, %bq : tensor<2x4x6xf32>, tensor<6xf32> -> tensor<2x4x6xf32>
    %q2 = nn.reshape %q1 : tensor<2x4x6xf32> -> tensor<2x4x3x2xf32>
    %q = nn.transpose %q2 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x4x3x2xf32> -> tensor<2x3x4x2xf32>
    %k0 = nn.matmul %x, %wk : tensor<2x4x6xf32>, tensor<6x2xf32> -> tensor<2x4x2xf32>
    %k = nn.reshape %k0 : tensor<2x4x2xf32> -> tensor<2x1x4x2xf32>
    %v0 = nn.matmul %x, %wv : tensor<2x4x6xf32>, tensor<6x2xf32> -> tensor<2x4x2xf32>
    %v = nn.reshape %v0 : tensor<2x4x2xf32> -> tensor<2x1x4x2xf32>
    %a = nn.attention %q, %k, %v {scale = 0.7 : f64, causal_offset = 0 : i64} : tensor<2x3x4x2xf32>, tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32> -> tensor<2x3x4x2xf32>
    %t = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x3x4x2xf32> -> tensor<2x4x3x2xf32>
    %r = nn.reshape %t : tensor<2x4x3x2xf32> -> tensor<2x4x6xf32>
    %y = nn.matmul %r, %o : tensor<2x4x6xf32>, tensor<6x6xf32> -> tensor<2x4x6xf32>
    return %y : tensor<2x4x6xf32>
  }
}
