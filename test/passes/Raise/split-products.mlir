// RUN: hpc-opt %s --hpc-split-products --split-input-file | FileCheck %s

// q, k and v of grouped attention: 4 heads, 2 groups. Together their heads have no cut; each part alone has.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x6x32xf32>
// CHECK: %[[W:.*]] = nn.parameter
// CHECK: %[[WQ:.*]] = nn.slice %[[W]] {starts = array<i64: 0, 0>, {{.*}} -> tensor<32x32xf32>
// CHECK: %[[Q:.*]] = nn.matmul %[[X]], %[[WQ]]
// CHECK: %[[WK:.*]] = nn.slice %[[W]] {starts = array<i64: 0, 32>, {{.*}} -> tensor<32x16xf32>
// CHECK: %[[K:.*]] = nn.matmul %[[X]], %[[WK]]
// CHECK: %[[WV:.*]] = nn.slice %[[W]] {starts = array<i64: 0, 48>, {{.*}} -> tensor<32x16xf32>
// CHECK: %[[V:.*]] = nn.matmul %[[X]], %[[WV]]
// CHECK: return %[[Q]], %[[K]], %[[V]]
func.func @main(%x: tensor<2x6x32xf32>) -> (tensor<2x6x32xf32>, tensor<2x6x16xf32>, tensor<2x6x16xf32>) {
  %w = nn.parameter "w" stored <file = "w", bytes = 8192, hashes = [1]> : tensor<32x64xf32>
  %y = nn.matmul %x, %w : tensor<2x6x32xf32>, tensor<32x64xf32> -> tensor<2x6x64xf32>
  %q = nn.slice %y {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x6x64xf32> -> tensor<2x6x32xf32>
  %k = nn.slice %y {starts = array<i64: 0, 0, 32>, steps = array<i64: 1, 1, 1>} : tensor<2x6x64xf32> -> tensor<2x6x16xf32>
  %v = nn.slice %y {starts = array<i64: 0, 0, 48>, steps = array<i64: 1, 1, 1>} : tensor<2x6x64xf32> -> tensor<2x6x16xf32>
  return %q, %k, %v : tensor<2x6x32xf32>, tensor<2x6x16xf32>, tensor<2x6x16xf32>
}

// -----

// One key and value for all 4 heads, behind a bias and a reshape, the weight as [out, in]: each part takes its piece of weight and bias, and has the shape
// that its slice had.
// CHECK-LABEL: func.func @main(
// CHECK: %[[W:.*]] = nn.parameter "w"
// CHECK: %[[B:.*]] = nn.parameter "b"
// CHECK: nn.slice %[[W]] {starts = array<i64: 0, 0>, {{.*}} -> tensor<32x16xf32>
// CHECK: nn.matmul {{.*}} {transpose_rhs} {{.*}} -> tensor<2x6x32xf32>
// CHECK: nn.slice %[[B]] {starts = array<i64: 0>, {{.*}} -> tensor<32xf32>
// CHECK: nn.add
// CHECK: %[[Q:.*]] = nn.reshape {{.*}} -> tensor<2x6x4x8xf32>
// CHECK: nn.slice %[[W]] {starts = array<i64: 32, 0>, {{.*}} -> tensor<8x16xf32>
// CHECK: nn.slice %[[B]] {starts = array<i64: 32>, {{.*}} -> tensor<8xf32>
// CHECK: %[[K:.*]] = nn.reshape {{.*}} -> tensor<2x6x1x8xf32>
// CHECK: nn.slice %[[W]] {starts = array<i64: 40, 0>
// CHECK: nn.slice %[[B]] {starts = array<i64: 40>
// CHECK: %[[V:.*]] = nn.reshape {{.*}} -> tensor<2x6x1x8xf32>
// CHECK: return %[[Q]], %[[K]], %[[V]]
func.func @main(%x: tensor<2x6x16xf32>) -> (tensor<2x6x4x8xf32>, tensor<2x6x1x8xf32>, tensor<2x6x1x8xf32>) {
  %w = nn.parameter "w" stored <file = "w", bytes = 3072, hashes = [1]> : tensor<48x16xf32>
  %b = nn.parameter "b" stored <file = "w", bytes = 192, hashes = [1]> : tensor<48xf32>
  %m = nn.matmul %x, %w {transpose_rhs} : tensor<2x6x16xf32>, tensor<48x16xf32> -> tensor<2x6x48xf32>
  %a = nn.add %b, %m : tensor<48xf32>, tensor<2x6x48xf32> -> tensor<2x6x48xf32>
  %y = nn.reshape %a : tensor<2x6x48xf32> -> tensor<2x6x6x8xf32>
  %q = nn.slice %y {starts = array<i64: 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<2x6x6x8xf32> -> tensor<2x6x4x8xf32>
  %k = nn.slice %y {starts = array<i64: 0, 0, 4, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<2x6x6x8xf32> -> tensor<2x6x1x8xf32>
  %v = nn.slice %y {starts = array<i64: 0, 0, 5, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<2x6x6x8xf32> -> tensor<2x6x1x8xf32>
  return %q, %k, %v : tensor<2x6x4x8xf32>, tensor<2x6x1x8xf32>, tensor<2x6x1x8xf32>
}

// -----

// Parts of one size are cut alike as (3, rest): the product of gpt2 stays one.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-1: nn.matmul
// CHECK-NOT: nn.matmul
func.func @main(%x: tensor<2x6x16xf32>) -> (tensor<2x6x16xf32>, tensor<2x6x16xf32>, tensor<2x6x16xf32>) {
  %w = nn.parameter "w" stored <file = "w", bytes = 3072, hashes = [1]> : tensor<16x48xf32>
  %y = nn.matmul %x, %w : tensor<2x6x16xf32>, tensor<16x48xf32> -> tensor<2x6x48xf32>
  %q = nn.slice %y {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x6x48xf32> -> tensor<2x6x16xf32>
  %k = nn.slice %y {starts = array<i64: 0, 0, 16>, steps = array<i64: 1, 1, 1>} : tensor<2x6x48xf32> -> tensor<2x6x16xf32>
  %v = nn.slice %y {starts = array<i64: 0, 0, 32>, steps = array<i64: 1, 1, 1>} : tensor<2x6x48xf32> -> tensor<2x6x16xf32>
  return %q, %k, %v : tensor<2x6x16xf32>, tensor<2x6x16xf32>, tensor<2x6x16xf32>
}

// -----

// Ranges that overlap would be computed twice.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-1: nn.matmul
// CHECK-NOT: nn.matmul
func.func @main(%x: tensor<2x6x16xf32>) -> (tensor<2x6x20xf32>, tensor<2x6x32xf32>) {
  %w = nn.parameter "w" stored <file = "w", bytes = 3072, hashes = [1]> : tensor<16x48xf32>
  %y = nn.matmul %x, %w : tensor<2x6x16xf32>, tensor<16x48xf32> -> tensor<2x6x48xf32>
  %q = nn.slice %y {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x6x48xf32> -> tensor<2x6x20xf32>
  %k = nn.slice %y {starts = array<i64: 0, 0, 16>, steps = array<i64: 1, 1, 1>} : tensor<2x6x48xf32> -> tensor<2x6x32xf32>
  return %q, %k : tensor<2x6x20xf32>, tensor<2x6x32xf32>
}

// -----

// So would all of it for another reader.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-1: nn.matmul
// CHECK-NOT: nn.matmul
func.func @main(%x: tensor<2x6x16xf32>) -> (tensor<2x6x32xf32>, tensor<2x6x16xf32>, tensor<2x6x48xf32>) {
  %w = nn.parameter "w" stored <file = "w", bytes = 3072, hashes = [1]> : tensor<16x48xf32>
  %y = nn.matmul %x, %w : tensor<2x6x16xf32>, tensor<16x48xf32> -> tensor<2x6x48xf32>
  %q = nn.slice %y {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x6x48xf32> -> tensor<2x6x32xf32>
  %k = nn.slice %y {starts = array<i64: 0, 0, 32>, steps = array<i64: 1, 1, 1>} : tensor<2x6x48xf32> -> tensor<2x6x16xf32>
  return %q, %k, %y : tensor<2x6x32xf32>, tensor<2x6x16xf32>, tensor<2x6x48xf32>
}

// -----

// Rows of a slice along another dim, and every second column, are no parts of the columns.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-1: nn.matmul
// CHECK-NOT: nn.matmul
func.func @main(%x: tensor<2x6x16xf32>) -> (tensor<2x5x32xf32>, tensor<2x6x16xf32>) {
  %w = nn.parameter "w" stored <file = "w", bytes = 3072, hashes = [1]> : tensor<16x48xf32>
  %y = nn.matmul %x, %w : tensor<2x6x16xf32>, tensor<16x48xf32> -> tensor<2x6x48xf32>
  %q = nn.slice %y {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x6x48xf32> -> tensor<2x5x32xf32>
  %k = nn.slice %y {starts = array<i64: 0, 0, 32>, steps = array<i64: 1, 1, 1>} : tensor<2x6x48xf32> -> tensor<2x6x16xf32>
  return %q, %k : tensor<2x5x32xf32>, tensor<2x6x16xf32>
}

// -----

// [groups, heads of the group + 2, dim]: a part is a range in every group, so groups are cut as they are.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-1: nn.matmul
// CHECK-NOT: nn.matmul
func.func @main(%x: tensor<2x6x16xf32>) -> (tensor<2x6x2x2x6xf32>, tensor<2x6x2x1x6xf32>, tensor<2x6x2x1x6xf32>) {
  %w = nn.parameter "w" stored <file = "w", bytes = 3072, hashes = [1]> : tensor<16x48xf32>
  %m = nn.matmul %x, %w : tensor<2x6x16xf32>, tensor<16x48xf32> -> tensor<2x6x48xf32>
  %y = nn.reshape %m : tensor<2x6x48xf32> -> tensor<2x6x2x4x6xf32>
  %q = nn.slice %y {starts = array<i64: 0, 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1, 1>} : tensor<2x6x2x4x6xf32> -> tensor<2x6x2x2x6xf32>
  %k = nn.slice %y {starts = array<i64: 0, 0, 0, 2, 0>, steps = array<i64: 1, 1, 1, 1, 1>} : tensor<2x6x2x4x6xf32> -> tensor<2x6x2x1x6xf32>
  %v = nn.slice %y {starts = array<i64: 0, 0, 0, 3, 0>, steps = array<i64: 1, 1, 1, 1, 1>} : tensor<2x6x2x4x6xf32> -> tensor<2x6x2x1x6xf32>
  return %q, %k, %v : tensor<2x6x2x2x6xf32>, tensor<2x6x2x1x6xf32>, tensor<2x6x2x1x6xf32>
}

// -----

// Of two activations none is a weight.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-1: nn.matmul
// CHECK-NOT: nn.matmul
func.func @main(%x: tensor<2x6x16xf32>, %w: tensor<16x48xf32>) -> (tensor<2x6x32xf32>, tensor<2x6x16xf32>) {
  %y = nn.matmul %x, %w : tensor<2x6x16xf32>, tensor<16x48xf32> -> tensor<2x6x48xf32>
  %q = nn.slice %y {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x6x48xf32> -> tensor<2x6x32xf32>
  %k = nn.slice %y {starts = array<i64: 0, 0, 32>, steps = array<i64: 1, 1, 1>} : tensor<2x6x48xf32> -> tensor<2x6x16xf32>
  return %q, %k : tensor<2x6x32xf32>, tensor<2x6x16xf32>
}

// -----

// Keys and values are picked after a transpose (an exporter's index in the middle), the queries before it: all are parts of one product.
// CHECK-LABEL: func.func @main(
// CHECK: nn.slice {{.*}} {starts = array<i64: 0, 0>, {{.*}} -> tensor<16x32xf32>
// CHECK: nn.slice {{.*}} {starts = array<i64: 0, 32>, {{.*}} -> tensor<16x8xf32>
// CHECK: nn.transpose {{.*}} {permutation = array<i64: 2, 0, 1, 3>} : tensor<2x6x1x8xf32> -> tensor<1x2x6x8xf32>
// CHECK: nn.slice {{.*}} {starts = array<i64: 0, 40>, {{.*}} -> tensor<16x8xf32>
// CHECK: nn.transpose {{.*}} -> tensor<1x2x6x8xf32>
func.func @main(%x: tensor<2x6x16xf32>) -> (tensor<2x6x4x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) {
  %w = nn.parameter "w" stored <file = "w", bytes = 3072, hashes = [1]> : tensor<16x48xf32>
  %m = nn.matmul %x, %w : tensor<2x6x16xf32>, tensor<16x48xf32> -> tensor<2x6x48xf32>
  %y = nn.reshape %m : tensor<2x6x48xf32> -> tensor<2x6x6x8xf32>
  %q = nn.slice %y {starts = array<i64: 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<2x6x6x8xf32> -> tensor<2x6x4x8xf32>
  %t = nn.transpose %y {permutation = array<i64: 2, 0, 1, 3>} : tensor<2x6x6x8xf32> -> tensor<6x2x6x8xf32>
  %k = nn.slice %t {starts = array<i64: 4, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<6x2x6x8xf32> -> tensor<1x2x6x8xf32>
  %v = nn.slice %t {starts = array<i64: 5, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<6x2x6x8xf32> -> tensor<1x2x6x8xf32>
  return %q, %k, %v : tensor<2x6x4x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>
}
