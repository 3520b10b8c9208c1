// Add of a partial sum and a full value: resolved first, else the full value counts k times.
module {
  func.func @main(%x: tensor<2x7xf32>, %z: tensor<2x5xf32>) -> tensor<2x5xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %s = nn.add %y, %z : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    return %s : tensor<2x5xf32>
  }
}
// -----
// Two partial sums over one axis add up before one all-reduce, whatever stands between them.
module {
  func.func @main(%x: tensor<2x7xf32>, %z: tensor<2x5xf32>) -> tensor<2x5xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %b = nn.parameter "b" {value = dense<1.0> : tensor<5xf32>} : tensor<5xf32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %yb = nn.add %y, %b : tensor<2x5xf32>, tensor<5xf32> -> tensor<2x5xf32>
    %s = nn.add %yb, %z : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %x, %v : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %r = nn.add %s, %u : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    return %r : tensor<2x5xf32>
  }
}
// -----
// Partial over tp and partial over dp do not add.
module {
  func.func @main(%x: tensor<2x7xf32>, %z: tensor<2x6xf32>) -> tensor<2x5xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[2, 7@tp]">} : tensor<2x7xf32> -> tensor<2x7xf32>
    %c = nn.tanh %z {dist.seed = #dist.sharding<"[2, 6@dp]">} : tensor<2x6xf32> -> tensor<2x6xf32>
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<6x5xf32>} : tensor<6x5xf32>
    %y = nn.matmul %a, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %c, %v : tensor<2x6xf32>, tensor<6x5xf32> -> tensor<2x5xf32>
    %s = nn.add %y, %u : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    return %s : tensor<2x5xf32>
  }
}
// -----
// A product of two partial sums is none: both resolve. A product with a full value is.
module {
  func.func @main(%x: tensor<2x7xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %k = nn.constant dense<3.0> : tensor<f32> : tensor<f32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %x, %v : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %p = nn.mul %y, %u : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    %t = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %q0 = nn.mul %t, %k : tensor<2x5xf32>, tensor<f32> -> tensor<2x5xf32>
    %q = nn.tanh %q0 : tensor<2x5xf32> -> tensor<2x5xf32>
    return %p, %q : tensor<2x5xf32>, tensor<2x5xf32>
  }
}
// -----
// Where with a literal 0 is linear in the other branch; with another number it is not.
module {
  func.func @main(%x: tensor<2x7xf32>, %m: tensor<2x5xi1>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32> : tensor<f32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %a0 = nn.select %m, %y, %zero : tensor<2x5xi1>, tensor<2x5xf32>, tensor<f32> -> tensor<2x5xf32>
    %a = nn.exp %a0 : tensor<2x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %b0 = nn.select %m, %u, %two : tensor<2x5xi1>, tensor<2x5xf32>, tensor<f32> -> tensor<2x5xf32>
    %b = nn.exp %b0 : tensor<2x5xf32> -> tensor<2x5xf32>
    return %a, %b : tensor<2x5xf32>, tensor<2x5xf32>
  }
}
// -----
// Views and transposes carry partial sums; the sum is taken where it is read.
module {
  func.func @main(%x: tensor<2x3x7xf32>) -> tensor<10x3xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %y = nn.matmul %x, %w : tensor<2x3x7xf32>, tensor<7x5xf32> -> tensor<2x3x5xf32>
    %t = nn.transpose %y {permutation = array<i64: 0, 2, 1>} : tensor<2x3x5xf32> -> tensor<2x5x3xf32>
    %r = nn.reshape %t : tensor<2x5x3xf32> -> tensor<10x3xf32>
    %e = nn.exp %r : tensor<10x3xf32> -> tensor<10x3xf32>
    return %e : tensor<10x3xf32>
  }
}
// -----
// Scaled terms with biases of their own, one of them the other way round, beside a full one; rows that are cut too.
module {
  func.func @main(%x: tensor<4x7xf32> {dist.seed = #dist.sharding<"[4@dp, 7]">}, %g: tensor<4x1xf32>, %z: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %b = nn.parameter "b" {value = dense<1.0> : tensor<5xf32>} : tensor<5xf32>
    %y = nn.matmul %x, %w : tensor<4x7xf32>, tensor<7x5xf32> -> tensor<4x5xf32>
    %y1 = nn.add %y, %b : tensor<4x5xf32>, tensor<5xf32> -> tensor<4x5xf32>
    %y2 = nn.mul %y1, %g : tensor<4x5xf32>, tensor<4x1xf32> -> tensor<4x5xf32>
    %u = nn.matmul %x, %v : tensor<4x7xf32>, tensor<7x5xf32> -> tensor<4x5xf32>
    %u1 = nn.add %b, %u : tensor<5xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
    %u2 = nn.mul %z, %u1 : tensor<4x5xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
    %s = nn.add %y2, %z : tensor<4x5xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
    %r = nn.add %u2, %s : tensor<4x5xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
    return %r : tensor<4x5xf32>
  }
}
