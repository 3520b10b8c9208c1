// Heads split and merged: [B, S, H*D] <-> [B, H, S, D], five heads over any number of ranks.
module {
  func.func @main(%x: tensor<2x3x10xf32> {dist.seed = #dist.sharding<"[2@(mb, dp), 3, (5@tp, 2)]">}) -> tensor<2x3x10xf32> {
    %a = nn.reshape %x : tensor<2x3x10xf32> -> tensor<2x3x5x2xf32>
    %b = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x3x5x2xf32> -> tensor<2x5x3x2xf32>
    %c = nn.exp %b : tensor<2x5x3x2xf32> -> tensor<2x5x3x2xf32>
    %d = nn.transpose %c {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x3x2xf32> -> tensor<2x3x5x2xf32>
    %e = nn.reshape %d : tensor<2x3x5x2xf32> -> tensor<2x3x10xf32>
    return %e : tensor<2x3x10xf32>
  }
}
// -----
// [B, H, S, D] as [B*H, S, D] and back: rows of the box, no contiguous range.
module {
  func.func @main(%x: tensor<4x5x3x2xf32> {dist.seed = #dist.sharding<"[4@(mb, dp), 5@tp, 3, 2]">}) -> tensor<4x5x3x2xf32> {
    %a = nn.reshape %x : tensor<4x5x3x2xf32> -> tensor<20x3x2xf32>
    %b = nn.transpose %a {permutation = array<i64: 0, 2, 1>} : tensor<20x3x2xf32> -> tensor<20x2x3xf32>
    %c = nn.matmul %a, %b : tensor<20x3x2xf32>, tensor<20x2x3xf32> -> tensor<20x3x3xf32>
    %d = nn.matmul %c, %a : tensor<20x3x3xf32>, tensor<20x3x2xf32> -> tensor<20x3x2xf32>
    %e = nn.reshape %d : tensor<20x3x2xf32> -> tensor<4x5x3x2xf32>
    return %e : tensor<4x5x3x2xf32>
  }
}
// -----
// [B, S, E] as [B*S, E] round a linear.
module {
  func.func @main(%x: tensor<4x3x6xf32> {dist.seed = #dist.sharding<"[4@(mb, dp), 3, 6]">}) -> tensor<4x3x7xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x7xf32>, dist.seed = #dist.sharding<"[6, 7@tp]">} : tensor<6x7xf32>
    %a = nn.reshape %x : tensor<4x3x6xf32> -> tensor<12x6xf32>
    %b = nn.matmul %a, %w : tensor<12x6xf32>, tensor<6x7xf32> -> tensor<12x7xf32>
    %c = nn.reshape %b : tensor<12x7xf32> -> tensor<4x3x7xf32>
    return %c : tensor<4x3x7xf32>
  }
}
// -----
// q, k and v cut out of one dim: the parts of (3, 5@tp, 2).
module {
  func.func @main(%x: tensor<2x4xf32> {dist.seed = #dist.sharding<"[2@(mb, dp), 4]">}) -> (tensor<2x10xf32>, tensor<2x30xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<4x30xf32>, dist.seed = #dist.sharding<"[4, (3, 5@tp, 2)]">} : tensor<4x30xf32>
    %y = nn.matmul %x, %w : tensor<2x4xf32>, tensor<4x30xf32> -> tensor<2x30xf32>
    %q = nn.slice %y {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<2x30xf32> -> tensor<2x10xf32>
    %k = nn.slice %y {starts = array<i64: 0, 10>, steps = array<i64: 1, 1>} : tensor<2x30xf32> -> tensor<2x10xf32>
    %v = nn.slice %y {starts = array<i64: 0, 20>, steps = array<i64: 1, 1>} : tensor<2x30xf32> -> tensor<2x10xf32>
    %a = nn.mul %q, %k : tensor<2x10xf32>, tensor<2x10xf32> -> tensor<2x10xf32>
    %b = nn.sub %a, %v : tensor<2x10xf32>, tensor<2x10xf32> -> tensor<2x10xf32>
    %c = nn.concat %v, %q, %b {axis = 1 : i64} : tensor<2x10xf32>, tensor<2x10xf32>, tensor<2x10xf32> -> tensor<2x30xf32>
    return %b, %c : tensor<2x10xf32>, tensor<2x30xf32>
  }
}
// -----
// A plain column cut does not nest with (3, rest): gathered before the split.
module {
  func.func @main(%x: tensor<2x4xf32>) -> tensor<2x10xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<4x30xf32>, dist.seed = #dist.sharding<"[4, 30@tp]">} : tensor<4x30xf32>
    %y = nn.matmul %x, %w : tensor<2x4xf32>, tensor<4x30xf32> -> tensor<2x30xf32>
    %k = nn.slice %y {starts = array<i64: 0, 10>, steps = array<i64: 1, 1>} : tensor<2x30xf32> -> tensor<2x10xf32>
    %v = nn.slice %y {starts = array<i64: 0, 20>, steps = array<i64: 1, 1>} : tensor<2x30xf32> -> tensor<2x10xf32>
    %a = nn.mul %k, %v : tensor<2x10xf32>, tensor<2x10xf32> -> tensor<2x10xf32>
    return %a : tensor<2x10xf32>
  }
}
// -----
// A reshape whose factors do not nest: gathered before it.
module {
  func.func @main(%x: tensor<6x4xf32>) -> tensor<8x3xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[6@tp, 4]">} : tensor<6x4xf32> -> tensor<6x4xf32>
    %b = nn.reshape %a : tensor<6x4xf32> -> tensor<8x3xf32>
    %c = nn.exp %b {dist.seed = #dist.sharding<"[8, 3@tp]">} : tensor<8x3xf32> -> tensor<8x3xf32>
    return %c : tensor<8x3xf32>
  }
}
// -----
// Unequal slices, pads, flips and running sums need their axis whole, others stay cut.
module {
  func.func @main(%x: tensor<5x7xf32>) -> (tensor<5x4xf32>, tensor<5x9xf32>, tensor<5x7xf32>, tensor<5x7xf32>) {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[5@dp, 7@tp]">} : tensor<5x7xf32> -> tensor<5x7xf32>
    %s = nn.slice %a {starts = array<i64: 0, 2>, steps = array<i64: 1, 1>} : tensor<5x7xf32> -> tensor<5x4xf32>
    %p = nn.pad %a {low = array<i64: 0, 1>, high = array<i64: 0, 1>, value = 2.0 : f32} : tensor<5x7xf32> -> tensor<5x9xf32>
    %c = nn.cumsum %a {axis = 1 : i64} : tensor<5x7xf32> -> tensor<5x7xf32>
    %f = nn.slice %a {starts = array<i64: 0, 6>, steps = array<i64: 1, -1>} : tensor<5x7xf32> -> tensor<5x7xf32>
    return %s, %p, %c, %f : tensor<5x4xf32>, tensor<5x9xf32>, tensor<5x7xf32>, tensor<5x7xf32>
  }
}
// -----
// Constants and iotas are whole and sliced where a cut op reads them.
module {
  func.func @main(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[2, 5@tp]">} : tensor<2x5xf32> -> tensor<2x5xf32>
    %c = nn.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32> : tensor<5xf32>
    %i = nn.iota {dim = 1 : i64, start = 2 : i64, step = 3 : i64} : tensor<1x5xi64>
    %f = nn.cast %i : tensor<1x5xi64> -> tensor<1x5xf32>
    %b = nn.mul %a, %c : tensor<2x5xf32>, tensor<5xf32> -> tensor<2x5xf32>
    %d = nn.add %b, %f : tensor<2x5xf32>, tensor<1x5xf32> -> tensor<2x5xf32>
    return %d : tensor<2x5xf32>
  }
}
// -----
// Broadcasts: a dim of size 1 has no factor.
module {
  func.func @main(%x: tensor<4x1x5xf32> {dist.seed = #dist.sharding<"[4@(mb, dp), 1, 5@tp]">}, %m: tensor<3x1xf32>) -> tensor<4x3x5xf32> {
    %b = nn.broadcast %x : tensor<4x1x5xf32> -> tensor<4x3x5xf32>
    %c = nn.add %b, %m : tensor<4x3x5xf32>, tensor<3x1xf32> -> tensor<4x3x5xf32>
    return %c : tensor<4x3x5xf32>
  }
}
