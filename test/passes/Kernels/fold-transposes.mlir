// RUN: hpc-opt %s --hpc-fold-transposes | FileCheck %s

// CHECK-LABEL: @plain
// CHECK-NOT: nn.transpose
// CHECK: nn.matmul %arg0, %arg1 {transpose_rhs}
func.func @plain(%a: tensor<4x8xf32>, %b: tensor<5x8xf32>) -> tensor<4x5xf32> {
  %t = nn.transpose %b {permutation = array<i64: 1, 0>} : tensor<5x8xf32> -> tensor<8x5xf32>
  %r = nn.matmul %a, %t : tensor<4x8xf32>, tensor<8x5xf32> -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// Twice transposed is not transposed.
// CHECK-LABEL: @twice
// CHECK: nn.matmul %arg0, %arg1 :
func.func @twice(%a: tensor<4x8xf32>, %b: tensor<8x5xf32>) -> tensor<4x5xf32> {
  %t = nn.transpose %b {permutation = array<i64: 1, 0>} : tensor<8x5xf32> -> tensor<5x8xf32>
  %r = nn.matmul %a, %t {transpose_rhs} : tensor<4x8xf32>, tensor<5x8xf32> -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// Keys transposed as [B,S,H,D] -> [B,H,D,S]: the copy that remains keeps D last.
// CHECK-LABEL: @heads
// CHECK: %[[T:.*]] = nn.transpose %arg1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x33x3x8xf32> -> tensor<2x3x33x8xf32>
// CHECK-NEXT: nn.matmul %arg0, %[[T]] {transpose_rhs}
func.func @heads(%q: tensor<2x3x33x8xf32>, %k: tensor<2x33x3x8xf32>) -> tensor<2x3x33x33xf32> {
  %t = nn.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : tensor<2x33x3x8xf32> -> tensor<2x3x8x33xf32>
  %r = nn.matmul %q, %t : tensor<2x3x33x8xf32>, tensor<2x3x8x33xf32> -> tensor<2x3x33x33xf32>
  return %r : tensor<2x3x33x33xf32>
}

// A transpose of leading dims alone stays, and one with other readers stays for them.
// CHECK-LABEL: @stays
// CHECK: nn.transpose
// CHECK: nn.transpose
// CHECK: nn.matmul
func.func @stays(%a: tensor<2x3x4x8xf32>, %b: tensor<3x2x8x5xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x3x8x4xf32>) {
  %t = nn.transpose %b {permutation = array<i64: 1, 0, 2, 3>} : tensor<3x2x8x5xf32> -> tensor<2x3x8x5xf32>
  %u = nn.transpose %a {permutation = array<i64: 0, 1, 3, 2>} : tensor<2x3x4x8xf32> -> tensor<2x3x8x4xf32>
  %r = nn.matmul %u, %t {transpose_lhs} : tensor<2x3x8x4xf32>, tensor<2x3x8x5xf32> -> tensor<2x3x4x5xf32>
  return %r, %u : tensor<2x3x4x5xf32>, tensor<2x3x8x4xf32>
}

// A transpose that leaves the last dim where it is is no swap of the last two: the heads of the keys come apart by a copy.
// CHECK-LABEL: @leading
// CHECK: %[[T:.*]] = nn.transpose %arg1 {permutation = array<i64: 1, 0, 2>}
// CHECK: nn.matmul %arg0, %[[T]] : tensor<3x4x2xf32>
func.func @leading(%q: tensor<3x4x2xf32>, %k: tensor<2x3x5xf32>) -> tensor<3x4x5xf32> {
  %t = nn.transpose %k {permutation = array<i64: 1, 0, 2>} : tensor<2x3x5xf32> -> tensor<3x2x5xf32>
  %r = nn.matmul %q, %t : tensor<3x4x2xf32>, tensor<3x2x5xf32> -> tensor<3x4x5xf32>
  return %r : tensor<3x4x5xf32>
}

// Nor is one that turns three dims round, after which a swap would be left to copy.
// CHECK-LABEL: @round
// CHECK: %[[T:.*]] = nn.transpose %arg1 {permutation = array<i64: 2, 1, 0>}
// CHECK: nn.matmul %arg0, %[[T]] : tensor<3x4x2xf32>
func.func @round(%q: tensor<3x4x2xf32>, %k: tensor<5x2x3xf32>) -> tensor<3x4x5xf32> {
  %t = nn.transpose %k {permutation = array<i64: 2, 1, 0>} : tensor<5x2x3xf32> -> tensor<3x2x5xf32>
  %r = nn.matmul %q, %t : tensor<3x4x2xf32>, tensor<3x2x5xf32> -> tensor<3x4x5xf32>
  return %r : tensor<3x4x5xf32>
}
