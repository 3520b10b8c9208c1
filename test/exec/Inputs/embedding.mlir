// Vocabulary cut unevenly, negative ids, position table by iota, then a tied head.
module {
  func.func @main(%ids: tensor<4x3xi64> {test.limit = 11 : i64, dist.seed = #dist.sharding<"[4@(mb, dp), 3]">}) -> tensor<4x3x11xf32> {
    %wte = nn.parameter "wte" {value = dense<1.0> : tensor<11x6xf32>, dist.seed = #dist.sharding<"[11@tp, 6]">} : tensor<11x6xf32>
    %wpe = nn.parameter "wpe" {value = dense<1.0> : tensor<8x6xf32>} : tensor<8x6xf32>
    %t = nn.embedding %wte, %ids {vocabulary = 11 : i64} : tensor<11x6xf32>, tensor<4x3xi64> -> tensor<4x3x6xf32>
    %i = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
    %p = nn.embedding %wpe, %i {vocabulary = 8 : i64} : tensor<8x6xf32>, tensor<1x3xi64> -> tensor<1x3x6xf32>
    %x = nn.add %t, %p : tensor<4x3x6xf32>, tensor<1x3x6xf32> -> tensor<4x3x6xf32>
    %n = nn.layer_norm %x {epsilon = 1.0e-5 : f64} : tensor<4x3x6xf32> -> tensor<4x3x6xf32>
    %y = nn.matmul %n, %wte {transpose_rhs} : tensor<4x3x6xf32>, tensor<11x6xf32> -> tensor<4x3x11xf32>
    return %y : tensor<4x3x11xf32>
  }
}
// -----
// Table cut along its width; as the head, k is reduced.
module {
  func.func @main(%ids: tensor<4x3xi64> {test.limit = 11 : i64, dist.seed = #dist.sharding<"[4@(mb, dp), 3]">}) -> tensor<4x3x11xf32> {
    %wte = nn.parameter "wte" {value = dense<1.0> : tensor<11x7xf32>, dist.seed = #dist.sharding<"[11, 7@tp]">} : tensor<11x7xf32>
    %x = nn.embedding %wte, %ids {vocabulary = 11 : i64} : tensor<11x7xf32>, tensor<4x3xi64> -> tensor<4x3x7xf32>
    %n = nn.layer_norm %x {epsilon = 1.0e-5 : f64} : tensor<4x3x7xf32> -> tensor<4x3x7xf32>
    %y = nn.matmul %n, %wte {transpose_rhs} : tensor<4x3x7xf32>, tensor<11x7xf32> -> tensor<4x3x11xf32>
    return %y : tensor<4x3x11xf32>
  }
}
// -----
// Gather along an axis needs it whole; the other dims and the indices stay cut.
module {
  func.func @main(%x: tensor<5x4xf32>, %i: tensor<6xi64> {test.limit = 5 : i64, dist.seed = #dist.sharding<"[6@dp]">}) -> tensor<6x4xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[5, 4@tp]">} : tensor<5x4xf32> -> tensor<5x4xf32>
    %g = nn.gather %a, %i {axis = 0 : i64} : tensor<5x4xf32>, tensor<6xi64> -> tensor<6x4xf32>
    return %g : tensor<6x4xf32>
  }
}
// -----
// GatherND: batch dims stay cut, positions are whole.
module {
  func.func @main(%x: tensor<4x5x3xf32> {dist.seed = #dist.sharding<"[4@(mb, dp), 5, 3]">}, %i: tensor<4x2x1xi64> {test.limit = 5 : i64}) -> tensor<4x2x3xf32> {
    %g = nn.gather_nd %x, %i {batch_dims = 1 : i64} : tensor<4x5x3xf32>, tensor<4x2x1xi64> -> tensor<4x2x3xf32>
    return %g : tensor<4x2x3xf32>
  }
}
// -----
// GatherND: the places that the indices name positions for are cut as the indices are, what a position holds as the data; a
// partial sum of the data passes.
module {
  func.func @main(%x: tensor<4x5x6xf32>, %w: tensor<6x3xf32> {dist.seed = #dist.sharding<"[6@tp, 3]">}, %i: tensor<4x7x1xi64> {test.limit = 5 : i64, dist.seed = #dist.sharding<"[4, 7@dp, 1]">}) -> tensor<4x7x3xf32> {
    %p = nn.matmul %x, %w : tensor<4x5x6xf32>, tensor<6x3xf32> -> tensor<4x5x3xf32>
    %g = nn.gather_nd %p, %i {batch_dims = 1 : i64} : tensor<4x5x3xf32>, tensor<4x7x1xi64> -> tensor<4x7x3xf32>
    return %g : tensor<4x7x3xf32>
  }
}
// -----
// The same with what a position holds cut.
module {
  func.func @main(%x: tensor<4x5x7xf32>, %i: tensor<3x2xi64> {test.limit = 4 : i64, dist.seed = #dist.sharding<"[3@dp, 2]">}) -> tensor<3x7xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[4, 5, 7@tp]">} : tensor<4x5x7xf32> -> tensor<4x5x7xf32>
    %g = nn.gather_nd %a, %i {batch_dims = 0 : i64} : tensor<4x5x7xf32>, tensor<3x2xi64> -> tensor<3x7xf32>
    return %g : tensor<3x7xf32>
  }
}
