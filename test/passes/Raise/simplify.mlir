// RUN: hpc-opt %s --hpc-simplify --split-input-file | FileCheck %s

// Neutral elements and squares: if one survives, a matcher behind it misses.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
// CHECK-NEXT: %[[S:.*]] = nn.mul %[[X]], %[[X]]
// CHECK-NEXT: return %[[S]], %[[X]]
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<1xf32> : tensor<1xf32>
  %two = nn.constant dense<2.0> : tensor<f32> : tensor<f32>
  %a = nn.mul %one, %x : tensor<1xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %b = nn.add %a, %zero : tensor<2x3xf32>, tensor<f32> -> tensor<2x3xf32>
  %c = nn.sub %b, %zero : tensor<2x3xf32>, tensor<f32> -> tensor<2x3xf32>
  %d = nn.div %c, %one : tensor<2x3xf32>, tensor<1xf32> -> tensor<2x3xf32>
  %e = nn.pow %d, %two : tensor<2x3xf32>, tensor<f32> -> tensor<2x3xf32>
  %f = nn.cast %d : tensor<2x3xf32> -> tensor<2x3xf32>
  return %e, %f : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// A neutral element that broadcasts changes the shape and stays; so does 0 - x.
// CHECK-LABEL: func.func @main
// CHECK: nn.mul
// CHECK: nn.sub
func.func @main(%x: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>) {
  %ones = nn.constant dense<1.0> : tensor<2x1xf32> : tensor<2x1xf32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %a = nn.mul %x, %ones : tensor<3xf32>, tensor<2x1xf32> -> tensor<2x3xf32>
  %b = nn.sub %zero, %x : tensor<f32>, tensor<3xf32> -> tensor<3xf32>
  return %a, %b : tensor<2x3xf32>, tensor<3xf32>
}

// -----

// Only a division whose reciprocal is exact becomes a product, else results would round differently from the model's.
// CHECK-LABEL: func.func @main
// CHECK: %[[EIGHTH:.*]] = nn.constant dense<1.250000e-01>
// CHECK: nn.mul %{{.*}}, %[[EIGHTH]]
// CHECK: nn.div
// CHECK: nn.div {{.*}} tensor<3xi64>
func.func @main(%x: tensor<3xf32>, %n: tensor<3xi64>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xi64>) {
  %eight = nn.constant dense<8.0> : tensor<f32> : tensor<f32>
  %three = nn.constant dense<3.0> : tensor<f32> : tensor<f32>
  %two = nn.constant dense<2> : tensor<i64> : tensor<i64>
  %a = nn.div %x, %eight : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %b = nn.div %x, %three : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %c = nn.div %n, %two : tensor<3xi64>, tensor<i64> -> tensor<3xi64>
  return %a, %b, %c : tensor<3xf32>, tensor<3xf32>, tensor<3xi64>
}

// -----

// Transposes of transposes are one, a swap of the last two dims is the matmul's flag, and two that undo each other are none.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x4xf32>, %[[Y:[^:]*]]: tensor<2x5x4xf32>
// CHECK-NEXT: %[[P:.*]] = nn.matmul %[[X]], %[[Y]] {transpose_rhs}
// CHECK-NEXT: %[[Q:.*]] = nn.matmul %[[X]], %[[X]] {transpose_lhs}
// CHECK-NEXT: return %[[P]], %[[Q]], %[[X]]
func.func @main(%x: tensor<2x3x4xf32>, %y: tensor<2x5x4xf32>) -> (tensor<2x3x5xf32>, tensor<2x4x4xf32>, tensor<2x3x4xf32>) {
  %t = nn.transpose %y {permutation = array<i64: 1, 0, 2>} : tensor<2x5x4xf32> -> tensor<5x2x4xf32>
  %u = nn.transpose %t {permutation = array<i64: 1, 2, 0>} : tensor<5x2x4xf32> -> tensor<2x4x5xf32>
  %p = nn.matmul %x, %u : tensor<2x3x4xf32>, tensor<2x4x5xf32> -> tensor<2x3x5xf32>
  %v = nn.transpose %x {permutation = array<i64: 0, 2, 1>} : tensor<2x3x4xf32> -> tensor<2x4x3xf32>
  %q = nn.matmul %v, %x : tensor<2x4x3xf32>, tensor<2x3x4xf32> -> tensor<2x4x4xf32>
  %w = nn.transpose %v {permutation = array<i64: 0, 2, 1>} : tensor<2x4x3xf32> -> tensor<2x3x4xf32>
  return %p, %q, %w : tensor<2x3x5xf32>, tensor<2x4x4xf32>, tensor<2x3x4xf32>
}

// -----

// Equal ops are one op, dead ones none: matchers compare values.
// CHECK-LABEL: func.func @main
// CHECK: %[[E:.*]] = nn.exp
// CHECK-NEXT: return %[[E]], %[[E]]
func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %a = nn.exp %x : tensor<3xf32> -> tensor<3xf32>
  %b = nn.exp %x : tensor<3xf32> -> tensor<3xf32>
  %c = nn.log %x : tensor<3xf32> -> tensor<3xf32>
  return %a, %b : tensor<3xf32>, tensor<3xf32>
}

// -----

// x[arange(batch), last]: each index begins with its own place, so the gather has a batch dim, and a batch that is cut stays so. Twice, for two dims.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x9x24xf32>, %[[LAST:[^:]*]]: tensor<4x1xi64>, %[[PART:[^:]*]]: tensor<4x9x1xi64>
// CHECK: %[[Y:.*]] = nn.gather_nd %[[X]], %[[LAST]] {batch_dims = 1 : i64}
// CHECK: %[[Z:.*]] = nn.gather_nd %[[X]], %[[PART]] {batch_dims = 2 : i64}
// CHECK: return %[[Y]], %[[Z]]
func.func @main(%x: tensor<4x9x24xf32>, %last: tensor<4x1xi64>, %part: tensor<4x9x1xi64>) -> (tensor<4x24xf32>, tensor<4x9xf32>) {
  %i = nn.iota {dim = 0 : i64} : tensor<4x1xi64>
  %c = nn.concat %i, %last {axis = 1 : i64} : tensor<4x1xi64>, tensor<4x1xi64> -> tensor<4x2xi64>
  %y = nn.gather_nd %x, %c {batch_dims = 0 : i64} : tensor<4x9x24xf32>, tensor<4x2xi64> -> tensor<4x24xf32>
  %j = nn.iota {dim = 0 : i64} : tensor<4x1x1xi64>
  %jb = nn.broadcast %j : tensor<4x1x1xi64> -> tensor<4x9x1xi64>
  %k = nn.iota {dim = 1 : i64} : tensor<4x9x1xi64>
  %d = nn.concat %jb, %k, %part {axis = 2 : i64} : tensor<4x9x1xi64>, tensor<4x9x1xi64>, tensor<4x9x1xi64> -> tensor<4x9x3xi64>
  %z = nn.gather_nd %x, %d {batch_dims = 0 : i64} : tensor<4x9x24xf32>, tensor<4x9x3xi64> -> tensor<4x9xf32>
  return %y, %z : tensor<4x24xf32>, tensor<4x9xf32>
}

// -----

// Not so where the places are those of fewer rows than the data has, of another dim, or begin elsewhere.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: batch_dims = 0
func.func @main(%x: tensor<9x9x24xf32>, %last: tensor<4x1xi64>, %part: tensor<9x9x1xi64>) -> (tensor<4x24xf32>, tensor<9x9x24xf32>, tensor<9x9x24xf32>) {
  %i = nn.iota {dim = 0 : i64} : tensor<4x1xi64>
  %c = nn.concat %i, %last {axis = 1 : i64} : tensor<4x1xi64>, tensor<4x1xi64> -> tensor<4x2xi64>
  %y = nn.gather_nd %x, %c {batch_dims = 0 : i64} : tensor<9x9x24xf32>, tensor<4x2xi64> -> tensor<4x24xf32>
  %j = nn.iota {dim = 1 : i64} : tensor<9x9x1xi64>
  %d = nn.concat %j, %part {axis = 2 : i64} : tensor<9x9x1xi64>, tensor<9x9x1xi64> -> tensor<9x9x2xi64>
  %z = nn.gather_nd %x, %d {batch_dims = 0 : i64} : tensor<9x9x24xf32>, tensor<9x9x2xi64> -> tensor<9x9x24xf32>
  %k = nn.iota {dim = 0 : i64, start = 1 : i64} : tensor<9x9x1xi64>
  %e = nn.concat %k, %part {axis = 2 : i64} : tensor<9x9x1xi64>, tensor<9x9x1xi64> -> tensor<9x9x2xi64>
  %w = nn.gather_nd %x, %e {batch_dims = 0 : i64} : tensor<9x9x24xf32>, tensor<9x9x2xi64> -> tensor<9x9x24xf32>
  return %y, %z, %w : tensor<4x24xf32>, tensor<9x9x24xf32>, tensor<9x9x24xf32>
}

// -----

// Keys that are repeated for the heads of a group are swapped before the heads are merged, and back after it: so nobody saw the repetition.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x4x5x8xf32>
// CHECK-NEXT: %[[R:.*]] = nn.reshape %[[X]] : tensor<2x3x4x5x8xf32> -> tensor<2x12x5x8xf32>
// CHECK-NEXT: return %[[R]]
func.func @main(%x: tensor<2x3x4x5x8xf32>) -> tensor<2x12x5x8xf32> {
  %t = nn.transpose %x {permutation = array<i64: 0, 1, 2, 4, 3>} : tensor<2x3x4x5x8xf32> -> tensor<2x3x4x8x5xf32>
  %r = nn.reshape %t : tensor<2x3x4x8x5xf32> -> tensor<2x12x8x5xf32>
  %y = nn.transpose %r {permutation = array<i64: 0, 1, 3, 2>} : tensor<2x12x8x5xf32> -> tensor<2x12x5x8xf32>
  return %y : tensor<2x12x5x8xf32>
}

// -----

// A reshape that takes from the swapped dims leaves both transposes where they are.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-2: nn.transpose
func.func @main(%x: tensor<3x4x8x4xf32>) -> tensor<6x4x4x4xf32> {
  %t = nn.transpose %x {permutation = array<i64: 0, 1, 3, 2>} : tensor<3x4x8x4xf32> -> tensor<3x4x4x8xf32>
  %r = nn.reshape %t : tensor<3x4x4x8xf32> -> tensor<6x4x4x4xf32>
  %y = nn.transpose %r {permutation = array<i64: 0, 1, 3, 2>} : tensor<6x4x4x4xf32> -> tensor<6x4x4x4xf32>
  return %y : tensor<6x4x4x4xf32>
}

// -----

// A slice that lies in one part of a concatenation reads that part alone, backwards too: the new keys of past and new ones would wait for all else. What crosses from part to part stays.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:[^:]*]]: tensor<2x5x4xf32>, %[[B:[^:]*]]: tensor<2x3x4xf32>
// CHECK-DAG: %[[X:.*]] = nn.slice %[[B]] {starts = array<i64: 0, 2, 1>, steps = array<i64: 1, -2, 1>} : tensor<2x3x4xf32> -> tensor<2x2x3xf32>
// CHECK-DAG: %[[C:.*]] = nn.concat %[[A]], %[[B]]
// CHECK-DAG: %[[Y:.*]] = nn.slice %[[C]] {starts = array<i64: 0, 4, 0>
// CHECK: return %[[B]], %[[X]], %[[Y]]
func.func @main(%a: tensor<2x5x4xf32>, %b: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x2x3xf32>, tensor<2x2x4xf32>) {
  %c = nn.concat %a, %b {axis = 1 : i64} : tensor<2x5x4xf32>, tensor<2x3x4xf32> -> tensor<2x8x4xf32>
  %0 = nn.slice %c {starts = array<i64: 0, 5, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x8x4xf32> -> tensor<2x3x4xf32>
  %1 = nn.slice %c {starts = array<i64: 0, 7, 1>, steps = array<i64: 1, -2, 1>} : tensor<2x8x4xf32> -> tensor<2x2x3xf32>
  %2 = nn.slice %c {starts = array<i64: 0, 4, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x8x4xf32> -> tensor<2x2x4xf32>
  return %0, %1, %2 : tensor<2x3x4xf32>, tensor<2x2x3xf32>, tensor<2x2x4xf32>
}

// -----

// Parts without elements go: keys behind an empty past are keys.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[PAST:[^:]*]]: tensor<2x0x4xf32>, %[[A:[^:]*]]: tensor<2x3x4xf32>
// CHECK: %[[TWO:.*]] = nn.concat %[[A]], %[[A]] {axis = 1 : i64}
// CHECK: return %[[A]], %[[TWO]]
func.func @main(%past: tensor<2x0x4xf32>, %a: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x6x4xf32>) {
  %0 = nn.concat %past, %a {axis = 1 : i64} : tensor<2x0x4xf32>, tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  %1 = nn.concat %a, %past, %a {axis = 1 : i64} : tensor<2x3x4xf32>, tensor<2x0x4xf32>, tensor<2x3x4xf32> -> tensor<2x6x4xf32>
  return %0, %1 : tensor<2x3x4xf32>, tensor<2x6x4xf32>
}
