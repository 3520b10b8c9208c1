// Sum, max and min over a cut uneven dim: tails are filled with 0, the lowest and the highest value.
module {
  func.func @main(%x: tensor<3x7xf32>) -> (tensor<3x1xf32>, tensor<3x1xf32>, tensor<3x1xf32>, tensor<1x7xf32>) {
    %a0 = nn.exp %x {dist.seed = #dist.sharding<"[3, 7@tp]">} : tensor<3x7xf32> -> tensor<3x7xf32>
    %a = nn.neg %a0 : tensor<3x7xf32> -> tensor<3x7xf32>
    %s = nn.reduce sum %a {axes = array<i64: 1>} : tensor<3x7xf32> -> tensor<3x1xf32>
    %m = nn.reduce max %a {axes = array<i64: 1>} : tensor<3x7xf32> -> tensor<3x1xf32>
    %n = nn.reduce min %a0 {axes = array<i64: 1>} : tensor<3x7xf32> -> tensor<3x1xf32>
    %p = nn.reduce prod %a {axes = array<i64: 0>} : tensor<3x7xf32> -> tensor<1x7xf32>
    return %s, %m, %n, %p : tensor<3x1xf32>, tensor<3x1xf32>, tensor<3x1xf32>, tensor<1x7xf32>
  }
}
// -----
// Integers: the lowest of i64, and inputs (zero in their padding) for a maximum.
module {
  func.func @main(%x: tensor<3x7xi64> {dist.seed = #dist.sharding<"[3, 7@tp]">}) -> (tensor<3x1xi64>, tensor<1x1xi64>) {
    %a = nn.neg %x : tensor<3x7xi64> -> tensor<3x7xi64>
    %m = nn.reduce max %a {axes = array<i64: 1>} : tensor<3x7xi64> -> tensor<3x1xi64>
    %n = nn.reduce min %x {axes = array<i64: 0, 1>} : tensor<3x7xi64> -> tensor<1x1xi64>
    return %m, %n : tensor<3x1xi64>, tensor<1x1xi64>
  }
}
// -----
// A product over a cut uneven dim: tails are filled with 1.
module {
  func.func @main(%x: tensor<3x7xf32>) -> tensor<3x1xf32> {
    %a = nn.exp %x {dist.seed = #dist.sharding<"[3, 7@tp]">} : tensor<3x7xf32> -> tensor<3x7xf32>
    %s = nn.reduce prod %a {axes = array<i64: 1>} : tensor<3x7xf32> -> tensor<3x1xf32>
    return %s : tensor<3x1xf32>
  }
}
// -----
// Softmax over a cut dim, wanted cut: decomposed, max and sum of one number a row.
module {
  func.func @main(%x: tensor<3x7xf32>) -> tensor<3x7xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[3, 7@tp]">} : tensor<3x7xf32> -> tensor<3x7xf32>
    %s = nn.softmax %a {dist.seed = #dist.sharding<"[3, 7@tp]">} : tensor<3x7xf32> -> tensor<3x7xf32>
    return %s : tensor<3x7xf32>
  }
}
// -----
// Layer norm over a cut uneven dim: the mean has the true count.
module {
  func.func @main(%x: tensor<4x7xf32> {dist.seed = #dist.sharding<"[4@(mb, dp), 7]">}) -> tensor<4x7xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7xf32>} : tensor<7xf32>
    %b = nn.parameter "b" {value = dense<1.0> : tensor<7xf32>} : tensor<7xf32>
    %a = nn.tanh %x : tensor<4x7xf32> -> tensor<4x7xf32>
    %s = nn.layer_norm %a weight %w : tensor<7xf32> bias %b : tensor<7xf32> {epsilon = 1.0e-5 : f64, dist.seed = #dist.sharding<"[4, 7@tp]">} : tensor<4x7xf32> -> tensor<4x7xf32>
    %r = nn.rms_norm %s weight %w : tensor<7xf32> {epsilon = 1.0e-5 : f64, dist.seed = #dist.sharding<"[4, 7@tp]">} : tensor<4x7xf32> -> tensor<4x7xf32>
    return %r : tensor<4x7xf32>
  }
}
// -----
// Softmax whose rows are whole though its operand is cut: gathered.
module {
  func.func @main(%x: tensor<3x7xf32>) -> tensor<3x7xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[3, 7@tp]">} : tensor<3x7xf32> -> tensor<3x7xf32>
    %s = nn.softmax %a : tensor<3x7xf32> -> tensor<3x7xf32>
    return %s : tensor<3x7xf32>
  }
}
