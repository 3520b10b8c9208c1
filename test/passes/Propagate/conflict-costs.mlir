// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-verify-propagated 2>/dev/null | FileCheck %s

// Each answer flips where a term of the costs has another sign, another factor, or is missing. A running sum along dim 0 needs this dim whole; a seeded cut stays. A gather of n bytes over tp=2
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

// Two ops of a group read one value, which is gathered once: 16 columns instead of the 32 of their results.
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

// One op of a group gives its cut up, the other does not: the column is gathered, the tensor to which its copies are added is not.
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

// A seed's cut stays, though nothing would be gathered without it. A cut of the batch stays, though to gather the column would be cheaper.
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

// A composite pays 16 bytes a row and two collectives for an internal cut. 3,000 rows of 16 cost 48,000 bytes and two collectives; to gather them costs 96,000 bytes and one: they are gathered. To gather 3,000 rows of 64 costs 384,000 bytes: they stay cut.
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

// Logits of a loss stay cut, however few they are, since each rank would have to hold all of them.
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

// A vector with a seed keeps the op that reads it cut. A vector without one does not, and costs nothing, since each rank may hold all of it.
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

// A weight keeps the factors of its own dims cut. The rows of the activations are no such factor: they are gathered, since they are smaller than the result.
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

// One reader wants all rows, and a slice of these is what the other reader wants: this is one gather, of the operand or of the result. A tie keeps the cut; a column is gathered before it is repeated.
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

// A slice is no collective. To cut rows over another axis takes one gather before the op or after it, which is a tie.
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

// An all-reduce of 8 x 64 elements over two ranks moves 512 of them to a rank, a reduce-scatter 256, the gather of 8 x 96 elements 384. So the gather replaces the all-reduce, but not the reduce-scatter.
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

// An all-to-all of 8 x 16 elements moves 32 of them to a rank, the gather of 8 x 12 elements 48: the rows stay cut.
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
