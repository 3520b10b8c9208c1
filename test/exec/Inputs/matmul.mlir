// Column cut: the output stays cut, nothing is communicated.
module {
  func.func @main(%x: tensor<3x6xf32> {dist.seed = #dist.sharding<"[3@(mb, dp), 6]">}) -> tensor<3x7xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x7xf32>, dist.seed = #dist.sharding<"[6, 7@tp]">} : tensor<6x7xf32>
    %y = nn.matmul %x, %w : tensor<3x6xf32>, tensor<6x7xf32> -> tensor<3x7xf32>
    return %y : tensor<3x7xf32>
  }
}
// -----
// Row cut, uneven: a partial sum whose padded tail must be filled.
module {
  func.func @main(%x: tensor<3x7xf32> {dist.seed = #dist.sharding<"[3@(mb, dp), 7]">}) -> tensor<3x5xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %t = nn.tanh %x : tensor<3x7xf32> -> tensor<3x7xf32>
    %y = nn.matmul %t, %w : tensor<3x7xf32>, tensor<7x5xf32> -> tensor<3x5xf32>
    return %y : tensor<3x5xf32>
  }
}
// -----
// Column then row (Megatron's MLP), the second cut inferred; bias after the sum, once.
module {
  func.func @main(%x: tensor<4x3x6xf32> {dist.seed = #dist.sharding<"[4@(mb, dp), 3, 6]">}) -> tensor<4x3x6xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x7xf32>, dist.seed = #dist.sharding<"[6, 7@tp]">} : tensor<6x7xf32>
    %c = nn.parameter "c" {value = dense<1.0> : tensor<7xf32>} : tensor<7xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<7x6xf32>} : tensor<7x6xf32>
    %b = nn.parameter "b" {value = dense<1.0> : tensor<6xf32>} : tensor<6xf32>
    %h0 = nn.matmul %x, %w : tensor<4x3x6xf32>, tensor<6x7xf32> -> tensor<4x3x7xf32>
    %h1 = nn.add %h0, %c : tensor<4x3x7xf32>, tensor<7xf32> -> tensor<4x3x7xf32>
    %h = nn.gelu %h1 : tensor<4x3x7xf32> -> tensor<4x3x7xf32>
    %y0 = nn.matmul %h, %v : tensor<4x3x7xf32>, tensor<7x6xf32> -> tensor<4x3x6xf32>
    %y1 = nn.add %y0, %b : tensor<4x3x6xf32>, tensor<6xf32> -> tensor<4x3x6xf32>
    %y = nn.add %y1, %x : tensor<4x3x6xf32>, tensor<4x3x6xf32> -> tensor<4x3x6xf32>
    return %y : tensor<4x3x6xf32>
  }
}
// -----
// Both operands are activations with padding along the contracted dim: both are filled.
module {
  func.func @main(%x: tensor<2x5xf32>, %z: tensor<5x3xf32>) -> tensor<2x3xf32> {
    %a = nn.exp %x {dist.seed = #dist.sharding<"[2, 5@tp]">} : tensor<2x5xf32> -> tensor<2x5xf32>
    %b = nn.exp %z {dist.seed = #dist.sharding<"[5@tp, 3]">} : tensor<5x3xf32> -> tensor<5x3xf32>
    %y = nn.matmul %a, %b : tensor<2x5xf32>, tensor<5x3xf32> -> tensor<2x3xf32>
    return %y : tensor<2x3xf32>
  }
}
// -----
// A partial sum that is wanted cut: reduce-scatter.
module {
  func.func @main(%x: tensor<3x7xf32>) -> tensor<3x5xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %y = nn.matmul %x, %w : tensor<3x7xf32>, tensor<7x5xf32> -> tensor<3x5xf32>
    %z = nn.tanh %y {dist.seed = #dist.sharding<"[3, 5@tp]">} : tensor<3x5xf32> -> tensor<3x5xf32>
    return %z : tensor<3x5xf32>
  }
}
// -----
// The same axis wanted by rows of the input and columns of the weight: the weight wins, the input is gathered.
module {
  func.func @main(%x: tensor<5x6xf32>) -> tensor<5x7xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[5@tp, 6]">} : tensor<5x6xf32> -> tensor<5x6xf32>
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x7xf32>, dist.seed = #dist.sharding<"[6, 7@tp]">} : tensor<6x7xf32>
    %y = nn.matmul %a, %w : tensor<5x6xf32>, tensor<6x7xf32> -> tensor<5x7xf32>
    return %y : tensor<5x7xf32>
  }
}
// -----
// Two axes on one contraction and one output dim: cut by (row, col) with nested uneven blocks.
// MESH: mb=1:time, dp=1:data, tp.row=2:tensor, tp.col=2:tensor
// MESH: mb=1:time, dp=2:data, tp.row=3:tensor, tp.col=2:tensor
module {
  func.func @main(%x: tensor<4x5xf32>) -> tensor<4x7xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<5x7xf32>, dist.seed = #dist.sharding<"[5@tp.row, 7@tp.col]">} : tensor<5x7xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<7x7xf32>, dist.seed = #dist.sharding<"[7, 7@(tp.row, tp.col)]">} : tensor<7x7xf32>
    %t = nn.tanh %x : tensor<4x5xf32> -> tensor<4x5xf32>
    %y = nn.matmul %t, %w : tensor<4x5xf32>, tensor<5x7xf32> -> tensor<4x7xf32>
    %z = nn.matmul %y, %v : tensor<4x7xf32>, tensor<7x7xf32> -> tensor<4x7xf32>
    return %z : tensor<4x7xf32>
  }
}
// -----
// All-to-all: the axis moves from rows to columns.
module {
  func.func @main(%x: tensor<5x6xf32>) -> tensor<5x6xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[5@tp, 6]">} : tensor<5x6xf32> -> tensor<5x6xf32>
    %b = nn.exp %a {dist.seed = #dist.sharding<"[5, 6@tp]">} : tensor<5x6xf32> -> tensor<5x6xf32>
    return %b : tensor<5x6xf32>
  }
}
// -----
// A parameter cut in storage by one user and whole for another.
module {
  func.func @main(%x: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x6xf32>, dist.seed = #dist.sharding<"[6, 6@tp]">} : tensor<6x6xf32>
    %y = nn.matmul %x, %w : tensor<2x6xf32>, tensor<6x6xf32> -> tensor<2x6xf32>
    %s = nn.softmax %w : tensor<6x6xf32> -> tensor<6x6xf32>
    %z = nn.matmul %x, %s : tensor<2x6xf32>, tensor<6x6xf32> -> tensor<2x6xf32>
    return %y, %z : tensor<2x6xf32>, tensor<2x6xf32>
  }
}
