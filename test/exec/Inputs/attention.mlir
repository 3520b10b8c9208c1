// Heads over tp, fewer heads than ranks included.
module {
  func.func @main(%q: tensor<2x3x4x2xf32> {dist.seed = #dist.sharding<"[2@(mb, dp), 3, 4, 2]">}, %k: tensor<2x3x4x2xf32>, %v: tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32> {
    %a = nn.attention %q, %k, %v {scale = 0.7 : f64, causal_offset = 0 : i64, dist.seed = #dist.sharding<"[2, 3@tp, 4, 5]">} : tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32>, tensor<2x3x4x5xf32> -> tensor<2x3x4x5xf32>
    return %a : tensor<2x3x4x5xf32>
  }
}
// -----
// Grouped heads: (groups, 2) of the query over groups of the keys.
module {
  func.func @main(%x: tensor<2x4x6xf32> {dist.seed = #dist.sharding<"[2@(mb, dp), 4, 6]">}) -> tensor<2x4x6xf32> {
    %wq = nn.parameter "wq" {value = dense<1.0> : tensor<6x12xf32>} : tensor<6x12xf32>
    %wk = nn.parameter "wk" {value = dense<1.0> : tensor<6x6xf32>} : tensor<6x6xf32>
    %wv = nn.parameter "wv" {value = dense<1.0> : tensor<6x6xf32>} : tensor<6x6xf32>
    %wo = nn.parameter "wo" {value = dense<1.0> : tensor<12x6xf32>} : tensor<12x6xf32>
    %q0 = nn.matmul %x, %wq : tensor<2x4x6xf32>, tensor<6x12xf32> -> tensor<2x4x12xf32>
    %k0 = nn.matmul %x, %wk : tensor<2x4x6xf32>, tensor<6x6xf32> -> tensor<2x4x6xf32>
    %v0 = nn.matmul %x, %wv : tensor<2x4x6xf32>, tensor<6x6xf32> -> tensor<2x4x6xf32>
    %q1 = nn.reshape %q0 : tensor<2x4x12xf32> -> tensor<2x4x6x2xf32>
    %k1 = nn.reshape %k0 : tensor<2x4x6xf32> -> tensor<2x4x3x2xf32>
    %v1 = nn.reshape %v0 : tensor<2x4x6xf32> -> tensor<2x4x3x2xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x4x6x2xf32> -> tensor<2x6x4x2xf32>
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x4x3x2xf32> -> tensor<2x3x4x2xf32>
    %v = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x4x3x2xf32> -> tensor<2x3x4x2xf32>
    %a = nn.attention %q, %k, %v {scale = 0.7 : f64, causal_offset = 0 : i64, dist.seed = #dist.sharding<"[2, (3@tp, 2), 4, 2]">} : tensor<2x6x4x2xf32>, tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32> -> tensor<2x6x4x2xf32>
    %t = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x4x2xf32> -> tensor<2x4x6x2xf32>
    %m = nn.reshape %t : tensor<2x4x6x2xf32> -> tensor<2x4x12xf32>
    %y = nn.matmul %m, %wo : tensor<2x4x12xf32>, tensor<12x6xf32> -> tensor<2x4x6xf32>
    %r = nn.add %y, %x : tensor<2x4x6xf32>, tensor<2x4x6xf32> -> tensor<2x4x6xf32>
    return %r : tensor<2x4x6xf32>
  }
}
// -----
// One key head for all queries: the query's heads are cut, keys are whole.
module {
  func.func @main(%q: tensor<2x6x4x2xf32>, %k: tensor<2x1x4x2xf32>, %v: tensor<2x1x4x2xf32>, %bias: tensor<1x6x4x4xf32>) -> tensor<2x6x4x2xf32> {
    %a = nn.attention %q, %k, %v bias %bias : tensor<1x6x4x4xf32> {scale = 0.7 : f64, dist.seed = #dist.sharding<"[2, 6@tp, 4, 2]">} : tensor<2x6x4x2xf32>, tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32> -> tensor<2x6x4x2xf32>
    return %a : tensor<2x6x4x2xf32>
  }
}
// -----
// Queries cut along the sequence (not causal).
module {
  func.func @main(%q: tensor<2x2x5x2xf32>, %k: tensor<2x2x5x2xf32>, %v: tensor<2x2x5x2xf32>) -> tensor<2x2x5x2xf32> {
    %a = nn.attention %q, %k, %v {scale = 0.7 : f64, dist.seed = #dist.sharding<"[2, 2, 5@tp, 2]">} : tensor<2x2x5x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x2xf32> -> tensor<2x2x5x2xf32>
    return %a : tensor<2x2x5x2xf32>
  }
}
