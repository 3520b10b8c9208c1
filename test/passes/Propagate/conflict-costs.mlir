// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-verify-propagated 2>/dev/null | FileCheck %s

// Each answer flips where a term of the costs has another sign, another factor, or is missing. A running sum down dim 0 wants it whole; what a seed cuts stays cut. A gather of n bytes over tp=2
// brings n / 2 to each rank, and a collective takes as long as 64 KiB.

// The column is gathered, not the 64 that are made of it. A tie is no reason to give a cut up.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.abs {{.*}} -> tensor<8x1xf32, #dist.sharding<"[8@tp, 1]">>
// CHECK: nn.broadcast {{.*}} -> tensor<8x64xf32, #dist.sharding<"[8, 64]">>
// CHECK: nn.abs {{.*}} -> tensor<8x64xf32, #dist.sharding<"[8@tp, 64]">>
// CHECK: nn.neg {{.*}} -> tensor<8x64xf32, #dist.sharding<"[8@tp, 64]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<8x1xf32>, %y: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
    %a = nn.abs %x {dist.seed = #dist.sharding<"[8@tp, 1]">} : tensor<8x1xf32> -> tensor<8x1xf32>
    %b = nn.broadcast %a : tensor<8x1xf32> -> tensor<8x64xf32>
    %c = nn.cumsum %b {axis = 0 : i64} : tensor<8x64xf32> -> tensor<8x64xf32>
    %d = nn.abs %y {dist.seed = #dist.sharding<"[8@tp, 64]">} : tensor<8x64xf32> -> tensor<8x64xf32>
    %e = nn.neg %d : tensor<8x64xf32> -> tensor<8x64xf32>
    %f = nn.cumsum %e {axis = 0 : i64} : tensor<8x64xf32> -> tensor<8x64xf32>
    return %c, %f : tensor<8x64xf32>, tensor<8x64xf32>
  }
}

// -----

// One gather of 16 columns is less than two of 6 each, though it moves more; none of the three ops alone would be less.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.neg {{.*}} -> tensor<8x16xf32, #dist.sharding<"[8, 16]">>
// CHECK: nn.slice {{.*}} -> tensor<8x6xf32, #dist.sharding<"[8, 6]">>
// CHECK: nn.slice {{.*}} -> tensor<8x6xf32, #dist.sharding<"[8, 6]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<8x16xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
    %a = nn.abs %x {dist.seed = #dist.sharding<"[8@tp, 16]">} : tensor<8x16xf32> -> tensor<8x16xf32>
    %b = nn.neg %a : tensor<8x16xf32> -> tensor<8x16xf32>
    %c = nn.slice %b {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<8x16xf32> -> tensor<8x6xf32>
    %d = nn.slice %b {starts = array<i64: 0, 8>, steps = array<i64: 1, 1>} : tensor<8x16xf32> -> tensor<8x6xf32>
    %e = nn.cumsum %c {axis = 0 : i64} : tensor<8x6xf32> -> tensor<8x6xf32>
    %f = nn.cumsum %d {axis = 0 : i64} : tensor<8x6xf32> -> tensor<8x6xf32>
    return %e, %f : tensor<8x6xf32>, tensor<8x6xf32>
  }
}

// -----

// What two ops of a group read is gathered for both at once: 16 columns instead of the 32 that they make.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.neg {{.*}} -> tensor<8x16xf32, #dist.sharding<"[8, 16]">>
// CHECK: nn.exp {{.*}} -> tensor<8x16xf32, #dist.sharding<"[8, 16]">>
// CHECK: nn.concat {{.*}} -> tensor<8x32xf32, #dist.sharding<"[8, 32]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<8x16xf32>) -> tensor<8x32xf32> {
    %a = nn.abs %x {dist.seed = #dist.sharding<"[8@tp, 16]">} : tensor<8x16xf32> -> tensor<8x16xf32>
    %b = nn.neg %a : tensor<8x16xf32> -> tensor<8x16xf32>
    %c = nn.exp %a : tensor<8x16xf32> -> tensor<8x16xf32>
    %d = nn.concat %b, %c {axis = 1 : i64} : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x32xf32>
    %e = nn.cumsum %d {axis = 0 : i64} : tensor<8x32xf32> -> tensor<8x32xf32>
    return %e : tensor<8x32xf32>
  }
}

// -----

// One op of a group alone: the column is gathered for its 64 copies, not so the tensor that these are added to.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.broadcast {{.*}} -> tensor<8x64xf32, #dist.sharding<"[8, 64]">>
// CHECK: nn.add {{.*}} -> tensor<8x64xf32, #dist.sharding<"[8@tp, 64]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<8x1xf32>, %y: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
    %a = nn.abs %x {dist.seed = #dist.sharding<"[8@tp, 1]">} : tensor<8x1xf32> -> tensor<8x1xf32>
    %d = nn.abs %y {dist.seed = #dist.sharding<"[8@tp, 64]">} : tensor<8x64xf32> -> tensor<8x64xf32>
    %b = nn.broadcast %a : tensor<8x1xf32> -> tensor<8x64xf32>
    %c = nn.cumsum %b {axis = 0 : i64} : tensor<8x64xf32> -> tensor<8x64xf32>
    %e = nn.add %b, %d : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
    return %c, %e : tensor<8x64xf32>, tensor<8x64xf32>
  }
}

// -----

// A seed's cut stays, though nothing would have to be gathered without it; so does the batch's, though a column would be less than what is made of it.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.abs {{.*}} -> tensor<8x16xf32, #dist.sharding<"[8@tp, 16]">>
// CHECK: nn.abs {{.*}} -> tensor<8x1xf32, #dist.sharding<"[8@dp, 1]">>
// CHECK: nn.broadcast {{.*}} -> tensor<8x64xf32, #dist.sharding<"[8@dp, 64]">>
module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=2:tensor">} {
  func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x1xf32>) -> (tensor<8x16xf32>, tensor<8x64xf32>) {
    %a = nn.abs %x {dist.seed = #dist.sharding<"[8@tp, 16]">} : tensor<8x16xf32> -> tensor<8x16xf32>
    %b = nn.cumsum %a {axis = 0 : i64} : tensor<8x16xf32> -> tensor<8x16xf32>
    %c = nn.abs %y {dist.seed = #dist.sharding<"[8@dp, 1]">} : tensor<8x1xf32> -> tensor<8x1xf32>
    %d = nn.broadcast %c : tensor<8x1xf32> -> tensor<8x64xf32>
    %e = nn.cumsum %d {axis = 0 : i64} : tensor<8x64xf32> -> tensor<8x64xf32>
    return %b, %e : tensor<8x16xf32>, tensor<8x64xf32>
  }
}

// -----

// A composite pays 16 bytes a row and two collectives for an internal cut. 3,000 rows of 16: 48,000 bytes and two collectives against 96,000 and one: the rows are gathered. Of 64: 384,000 bytes and one: they stay cut.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.softmax {{.*}} -> tensor<3000x16xf32, #dist.sharding<"[3000, 16]">>
// CHECK: nn.softmax {{.*}} -> tensor<3000x64xf32, #dist.sharding<"[3000, 64@tp]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<3000x16xf32>, %y: tensor<3000x64xf32>) -> (tensor<3000x16xf32>, tensor<3000x64xf32>) {
    %a = nn.abs %x {dist.seed = #dist.sharding<"[3000, 16@tp]">} : tensor<3000x16xf32> -> tensor<3000x16xf32>
    %b = nn.softmax %a : tensor<3000x16xf32> -> tensor<3000x16xf32>
    %c = nn.neg %b {dist.seed = #dist.sharding<"[3000, 16@tp]">} : tensor<3000x16xf32> -> tensor<3000x16xf32>
    %d = nn.abs %y {dist.seed = #dist.sharding<"[3000, 64@tp]">} : tensor<3000x64xf32> -> tensor<3000x64xf32>
    %e = nn.softmax %d : tensor<3000x64xf32> -> tensor<3000x64xf32>
    %f = nn.neg %e {dist.seed = #dist.sharding<"[3000, 64@tp]">} : tensor<3000x64xf32> -> tensor<3000x64xf32>
    return %c, %f : tensor<3000x16xf32>, tensor<3000x64xf32>
  }
}

// -----

// A loss is not given logits whole, however few they are: ranks would have to hold them.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.cross_entropy {{.*}}dist.factors = #dist.sharding<"[8, 16@tp]">
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<8x16xf32>, %labels: tensor<8xi64>) -> tensor<8xf32> {
    %a = nn.abs %x {dist.seed = #dist.sharding<"[8, 16@tp]">} : tensor<8x16xf32> -> tensor<8x16xf32>
    %l, %t, %s = nn.cross_entropy %a, %labels : tensor<8x16xf32>, tensor<8xi64> -> tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
    return %l : tensor<8xf32>
  }
}

// -----

// A vector that a seed cuts keeps what it is added to cut. Another one follows: that costs nothing, since a rank may hold it whole.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.select {{.*}} -> tensor<64x16xf32, #dist.sharding<"[64, 16@tp]">>
// CHECK: nn.select {{.*}} -> tensor<64x16xf32, #dist.sharding<"[64, 16]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%m: tensor<64x1xi1>, %x: tensor<1x16xf32>) -> (tensor<64x16xf32>, tensor<64x16xf32>) {
    %v = nn.parameter "v" {value = dense<1.0> : tensor<16xf32>, dist.seed = #dist.sharding<"[16@tp]">} : tensor<16xf32>
    %w = nn.parameter "w" {value = dense<1.0> : tensor<16xf32>} : tensor<16xf32>
    %a = nn.abs %x {dist.seed = #dist.sharding<"[1, 16@tp]">} : tensor<1x16xf32> -> tensor<1x16xf32>
    %b = nn.select %m, %a, %v : tensor<64x1xi1>, tensor<1x16xf32>, tensor<16xf32> -> tensor<64x16xf32>
    %c = nn.cumsum %b {axis = 1 : i64} : tensor<64x16xf32> -> tensor<64x16xf32>
    %d = nn.select %m, %a, %w : tensor<64x1xi1>, tensor<1x16xf32>, tensor<16xf32> -> tensor<64x16xf32>
    %e = nn.cumsum %d {axis = 1 : i64} : tensor<64x16xf32> -> tensor<64x16xf32>
    return %c, %e : tensor<64x16xf32>, tensor<64x16xf32>
  }
}

// -----

// A weight fixes the factors of its own dims alone: the rows of what it is multiplied with are gathered, where they are fewer than those of the product.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.matmul {{.*}} -> tensor<8x64xf32, #dist.sharding<"[8, 64]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<8x4xf32>) -> tensor<8x64xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<4x64xf32>} : tensor<4x64xf32>
    %a = nn.abs %x {dist.seed = #dist.sharding<"[8@tp, 4]">} : tensor<8x4xf32> -> tensor<8x4xf32>
    %b = nn.matmul %a, %w : tensor<8x4xf32>, tensor<4x64xf32> -> tensor<8x64xf32>
    %c = nn.cumsum %b {axis = 0 : i64} : tensor<8x64xf32> -> tensor<8x64xf32>
    return %c : tensor<8x64xf32>
  }
}

// -----

// A returned value is complete: two columns are gathered, not 64 summed over ranks.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.matmul {{.*}} -> tensor<8x64xf32, #dist.sharding<"[8, 64]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<8x2xf32>, %y: tensor<2x64xf32> {dist.seed = #dist.seed<"[2, 64]">}) -> tensor<8x64xf32> {
    %a = nn.abs %x {dist.seed = #dist.sharding<"[8, 2@tp]">} : tensor<8x2xf32> -> tensor<8x2xf32>
    %b = nn.matmul %a, %y : tensor<8x2xf32>, tensor<2x64xf32> -> tensor<8x64xf32>
    return %b : tensor<8x64xf32>
  }
}

// -----

// Of two readers one wants all rows, from which the other's columns are a slice: one gather, whether of the operand or of the result. So rows of the same size stay cut, and what is made of a column does not.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.neg {{.*}} -> tensor<8x16xf32, #dist.sharding<"[8@tp, 16]">>
// CHECK: nn.broadcast {{.*}} -> tensor<8x16xf32, #dist.sharding<"[8, 16]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x1xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
    %a = nn.abs %x {dist.seed = #dist.sharding<"[8@tp, 16]">} : tensor<8x16xf32> -> tensor<8x16xf32>
    %b = nn.neg %a : tensor<8x16xf32> -> tensor<8x16xf32>
    %c = nn.cumsum %b {axis = 0 : i64} : tensor<8x16xf32> -> tensor<8x16xf32>
    %d = nn.tanh %b {dist.seed = #dist.sharding<"[8, 16@tp]">} : tensor<8x16xf32> -> tensor<8x16xf32>
    %e = nn.abs %y {dist.seed = #dist.sharding<"[8@tp, 1]">} : tensor<8x1xf32> -> tensor<8x1xf32>
    %f = nn.broadcast %e : tensor<8x1xf32> -> tensor<8x16xf32>
    %g = nn.cumsum %f {axis = 0 : i64} : tensor<8x16xf32> -> tensor<8x16xf32>
    %h = nn.tanh %f {dist.seed = #dist.sharding<"[8, 16@tp]">} : tensor<8x16xf32> -> tensor<8x16xf32>
    return %c, %d, %g, %h : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
  }
}

// -----

// A slice is no collective: to cut rows over another axis is one gather, whether before the op or after it.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.neg {{.*}} -> tensor<8x16xf32, #dist.sharding<"[8@tp, 16]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor, x=4:tensor">} {
  func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %a = nn.abs %x {dist.seed = #dist.seed<"[8@tp, 16]">} : tensor<8x16xf32> -> tensor<8x16xf32>
    %b = nn.neg %a : tensor<8x16xf32> -> tensor<8x16xf32>
    %d = nn.tanh %b {dist.seed = #dist.seed<"[8@x, 16]">} : tensor<8x16xf32> -> tensor<8x16xf32>
    return %d : tensor<8x16xf32>
  }
}

// -----

// A vector that one reader wants whole is held whole, though another cuts it.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.parameter "v" {{.*}} #dist.sharding<"[16]">
// CHECK: nn.add {{.*}} -> tensor<8x16xf32, #dist.sharding<"[8, 16@tp]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
    %v = nn.parameter "v" {value = dense<1.0> : tensor<16xf32>} : tensor<16xf32>
    %a = nn.add %x, %v {dist.seed = #dist.sharding<"[8, 16@tp]">} : tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32>
    %b = nn.mul %x, %v {dist.seed = #dist.sharding<"[8@tp, 16]">} : tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32>
    return %a, %b : tensor<8x16xf32>, tensor<8x16xf32>
  }
}

// -----

// To sum 8 x 64 numbers over two ranks takes as many, there and back; if each keeps half, half as many; to gather 96 rows, 384. So they are gathered where the sum is wanted whole, and not where it is wanted in halves.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.matmul {{.*}} -> tensor<8x64xf32, #dist.sharding<"[8, 64]">>
// CHECK: nn.matmul {{.*}} -> tensor<8x64xf32, #dist.sharding<"[8, 64] partial{tp}">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<8x96xf32>, %y: tensor<96x64xf32> {dist.seed = #dist.seed<"[96, 64]">}) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
    %a = nn.abs %x {dist.seed = #dist.sharding<"[8, 96@tp]">} : tensor<8x96xf32> -> tensor<8x96xf32>
    %b = nn.matmul %a, %y : tensor<8x96xf32>, tensor<96x64xf32> -> tensor<8x64xf32>
    %c = nn.exp %x {dist.seed = #dist.sharding<"[8, 96@tp]">} : tensor<8x96xf32> -> tensor<8x96xf32>
    %d = nn.matmul %c, %y : tensor<8x96xf32>, tensor<96x64xf32> -> tensor<8x64xf32>
    %e = nn.tanh %d {dist.seed = #dist.sharding<"[8, 64@tp]">} : tensor<8x64xf32> -> tensor<8x64xf32>
    return %b, %e : tensor<8x64xf32>, tensor<8x64xf32>
  }
}

// -----

// From rows to columns each of two ranks gets a quarter of 16 columns; to gather the 12 that they are made of is half of these.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.pad {{.*}} -> tensor<8x16xf32, #dist.sharding<"[8@tp, 16]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<8x12xf32>) -> tensor<8x16xf32> {
    %a = nn.abs %x {dist.seed = #dist.seed<"[8@tp, 12]">} : tensor<8x12xf32> -> tensor<8x12xf32>
    %b = nn.pad %a {low = array<i64: 0, 0>, high = array<i64: 0, 4>, value = 0.0 : f32} : tensor<8x12xf32> -> tensor<8x16xf32>
    %c = nn.tanh %b {dist.seed = #dist.seed<"[8, 16@tp]">} : tensor<8x16xf32> -> tensor<8x16xf32>
    return %c : tensor<8x16xf32>
  }
}
