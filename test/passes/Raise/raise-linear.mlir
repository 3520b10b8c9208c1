// RUN: hpc-opt %s --hpc-raise-linear --split-input-file | FileCheck %s

// gpt2's linear: [B*S, C] round a matmul and its bias. Left as it is, no cut of the batch and of a head survives together.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x33x40xf32>, %[[W:[^:]*]]: tensor<40x120xf32>, %[[B:[^:]*]]: tensor<120xf32>
// CHECK-NEXT: %[[M:.*]] = nn.matmul %[[X]], %[[W]] : tensor<4x33x40xf32>, tensor<40x120xf32> -> tensor<4x33x120xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.add %[[M]], %[[B]]
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<4x33x40xf32>, %w: tensor<40x120xf32>, %b: tensor<120xf32>) -> tensor<4x33x120xf32> {
  %r = nn.reshape %x : tensor<4x33x40xf32> -> tensor<132x40xf32>
  %m = nn.matmul %r, %w : tensor<132x40xf32>, tensor<40x120xf32> -> tensor<132x120xf32>
  %a = nn.add %m, %b : tensor<132x120xf32>, tensor<120xf32> -> tensor<132x120xf32>
  %y = nn.reshape %a : tensor<132x120xf32> -> tensor<4x33x120xf32>
  return %y : tensor<4x33x120xf32>
}

// -----

// The way out of attention: heads and head dim merge on their own, [4, 33, 5, 8] -> [4, 33, 40], before the projection.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x5x33x8xf32>
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[X]]
// CHECK-NEXT: %[[R:.*]] = nn.reshape %[[T]] : tensor<4x33x5x8xf32> -> tensor<4x33x40xf32>
// CHECK-NEXT: %[[M:.*]] = nn.matmul %[[R]], %{{.*}} {transpose_rhs}
// CHECK-NEXT: return %[[M]]
func.func @main(%x: tensor<4x5x33x8xf32>, %w: tensor<40x40xf32>) -> tensor<4x33x40xf32> {
  %t = nn.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x5x33x8xf32> -> tensor<4x33x5x8xf32>
  %r = nn.reshape %t : tensor<4x33x5x8xf32> -> tensor<132x40xf32>
  %m = nn.matmul %r, %w {transpose_rhs} : tensor<132x40xf32>, tensor<40x40xf32> -> tensor<132x40xf32>
  %y = nn.reshape %m : tensor<132x40xf32> -> tensor<4x33x40xf32>
  return %y : tensor<4x33x40xf32>
}

// -----

// One sequence (B = 1), a whole feed-forward on merged rows with norm, residual and an operand that never had a batch dim.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<1x3x4xf32>
// CHECK: %[[N:.*]] = nn.layer_norm %[[X]] weight {{.*}} -> tensor<1x3x4xf32>
// CHECK-NEXT: %[[A:.*]] = nn.matmul %[[N]], %{{.*}} -> tensor<1x3x8xf32>
// CHECK-NEXT: %[[G:.*]] = nn.gelu %[[A]]
// CHECK-NEXT: %[[D:.*]] = nn.matmul %[[G]], %{{.*}} -> tensor<1x3x4xf32>
// CHECK-NEXT: %[[E:.*]] = nn.add %[[X]], %[[D]]
// CHECK-NEXT: %[[P:.*]] = nn.reshape %{{.*}} : tensor<3x4xf32> -> tensor<1x3x4xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.add %[[E]], %[[P]]
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<1x3x4xf32>, %w: tensor<4xf32>, %up: tensor<4x8xf32>, %down: tensor<8x4xf32>, %p: tensor<3x4xf32>) -> tensor<1x3x4xf32> {
  %r = nn.reshape %x : tensor<1x3x4xf32> -> tensor<3x4xf32>
  %n = nn.layer_norm %r weight %w : tensor<4xf32> {epsilon = 1.0e-5 : f64} : tensor<3x4xf32> -> tensor<3x4xf32>
  %a = nn.matmul %n, %up : tensor<3x4xf32>, tensor<4x8xf32> -> tensor<3x8xf32>
  %g = nn.gelu %a {tanh_approximation} : tensor<3x8xf32> -> tensor<3x8xf32>
  %d = nn.matmul %g, %down : tensor<3x8xf32>, tensor<8x4xf32> -> tensor<3x4xf32>
  %e = nn.add %r, %d : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  %f = nn.add %e, %p : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  %y = nn.reshape %f : tensor<3x4xf32> -> tensor<1x3x4xf32>
  return %y : tensor<1x3x4xf32>
}

// -----

// [B*H, S, D] round both products of an attention, K merged after its transpose: batch and heads come apart again.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x5x3x8xf32>, %[[K:[^:]*]]: tensor<2x3x5x8xf32>, %[[V:[^:]*]]: tensor<2x5x3x8xf32>
// CHECK: %[[T:.*]] = nn.transpose %[[K]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT: %[[S:.*]] = nn.matmul %[[Q]], %[[T]] {transpose_rhs} : tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32> -> tensor<2x5x3x3xf32>
// CHECK-NEXT: %[[A:.*]] = nn.add %[[S]], %{{.*}} : tensor<2x5x3x3xf32>, tensor<3x3xf32>
// CHECK-NEXT: %[[P:.*]] = nn.softmax %[[A]]
// CHECK-NEXT: %[[Y:.*]] = nn.matmul %[[P]], %[[V]] : {{.*}} -> tensor<2x5x3x8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @main(%q: tensor<2x5x3x8xf32>, %k: tensor<2x3x5x8xf32>, %v: tensor<2x5x3x8xf32>, %mask: tensor<3x3xf32>) -> tensor<2x5x3x8xf32> {
  %q3 = nn.reshape %q : tensor<2x5x3x8xf32> -> tensor<10x3x8xf32>
  %kt = nn.transpose %k {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x3x5x8xf32> -> tensor<2x5x3x8xf32>
  %k3 = nn.reshape %kt : tensor<2x5x3x8xf32> -> tensor<10x3x8xf32>
  %k4 = nn.transpose %k3 {permutation = array<i64: 0, 2, 1>} : tensor<10x3x8xf32> -> tensor<10x8x3xf32>
  %v3 = nn.reshape %v : tensor<2x5x3x8xf32> -> tensor<10x3x8xf32>
  %s = nn.matmul %q3, %k4 : tensor<10x3x8xf32>, tensor<10x8x3xf32> -> tensor<10x3x3xf32>
  %a = nn.add %s, %mask : tensor<10x3x3xf32>, tensor<3x3xf32> -> tensor<10x3x3xf32>
  %p = nn.softmax %a : tensor<10x3x3xf32> -> tensor<10x3x3xf32>
  %m = nn.matmul %p, %v3 : tensor<10x3x3xf32>, tensor<10x3x8xf32> -> tensor<10x3x8xf32>
  %y = nn.reshape %m : tensor<10x3x8xf32> -> tensor<2x5x3x8xf32>
  return %y : tensor<2x5x3x8xf32>
}

// -----

// An embedding of merged ids, and ops whose attributes count dims: a slice and a reduction of later dims keep their meaning.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[IDS:[^:]*]]: tensor<2x3xi64>
// CHECK: %[[E:.*]] = nn.embedding %{{.*}}, %[[IDS]] {{.*}} -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[S:.*]] = nn.slice %[[E]] {starts = array<i64: 0, 0, 1>, steps = array<i64: 1, 1, 1>} : tensor<2x3x4xf32> -> tensor<2x3x2xf32>
// CHECK-NEXT: %[[R:.*]] = nn.reduce sum %[[S]] {axes = array<i64: 2>} : tensor<2x3x2xf32> -> tensor<2x3x1xf32>
// CHECK-NEXT: return %[[R]]
func.func @main(%ids: tensor<2x3xi64>, %table: tensor<7x4xf32>) -> tensor<2x3x1xf32> {
  %flat = nn.reshape %ids : tensor<2x3xi64> -> tensor<6xi64>
  %e = nn.embedding %table, %flat {vocabulary = 7 : i64} : tensor<7x4xf32>, tensor<6xi64> -> tensor<6x4xf32>
  %s = nn.slice %e {starts = array<i64: 0, 1>, steps = array<i64: 1, 1>} : tensor<6x4xf32> -> tensor<6x2xf32>
  %r = nn.reduce sum %s {axes = array<i64: 1>} : tensor<6x2xf32> -> tensor<6x1xf32>
  %y = nn.reshape %r : tensor<6x1xf32> -> tensor<2x3x1xf32>
  return %y : tensor<2x3x1xf32>
}

// -----

// What combines or cuts the merged rows must keep them merged: a transpose, a sum over rows, a running sum, part of the rows.
// CHECK-LABEL: func.func @main(
// CHECK: %[[R:.*]] = nn.reshape %{{.*}} : tensor<2x3x4xf32> -> tensor<6x4xf32>
// CHECK-DAG: nn.transpose %[[R]]
// CHECK-DAG: nn.reduce sum %[[R]]
// CHECK-DAG: nn.cumsum %[[R]]
// CHECK-DAG: nn.slice %[[R]]
func.func @main(%x: tensor<2x3x4xf32>) -> (tensor<4x6xf32>, tensor<1x4xf32>, tensor<6x4xf32>, tensor<4x4xf32>) {
  %r = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %t = nn.transpose %r {permutation = array<i64: 1, 0>} : tensor<6x4xf32> -> tensor<4x6xf32>
  %s = nn.reduce sum %r {axes = array<i64: 0>} : tensor<6x4xf32> -> tensor<1x4xf32>
  %c = nn.cumsum %r {axis = 0 : i64} : tensor<6x4xf32> -> tensor<6x4xf32>
  %p = nn.slice %r {starts = array<i64: 1, 0>, steps = array<i64: 1, 1>} : tensor<6x4xf32> -> tensor<4x4xf32>
  return %t, %s, %c, %p : tensor<4x6xf32>, tensor<1x4xf32>, tensor<6x4xf32>, tensor<4x4xf32>
}

// -----

// One token (S = 1): a prefix [2, 1] that a reshape leaves alone is not merged, though its product is the first dim. (Taken for merged, it grows forever.)
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x1x4x8xf32>
// CHECK-NEXT: %[[R:.*]] = nn.reshape %[[X]] : tensor<2x1x4x8xf32> -> tensor<2x1x32xf32>
// CHECK-NEXT: %[[M:.*]] = nn.matmul %[[R]], %{{.*}} -> tensor<2x1x3xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.add %[[M]], %{{.*}} : tensor<2x1x3xf32>, tensor<3xf32>
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<2x1x4x8xf32>, %w: tensor<32x3xf32>, %b: tensor<3xf32>) -> tensor<2x1x3xf32> {
  %r = nn.reshape %x : tensor<2x1x4x8xf32> -> tensor<2x32xf32>
  %m = nn.matmul %r, %w : tensor<2x32xf32>, tensor<32x3xf32> -> tensor<2x3xf32>
  %a = nn.add %m, %b : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>
  %y = nn.reshape %a : tensor<2x3xf32> -> tensor<2x1x3xf32>
  return %y : tensor<2x1x3xf32>
}

// -----

// A vision transformer's q and k, squeezed out of [3, B, H, S, D]: the dim of size 1 that goes is no batch, and heads moved behind it would hide
// the attention.
// CHECK-LABEL: func.func @main(
// CHECK: %[[Q:.*]] = nn.reshape %{{.*}} : tensor<1x6x5x13x4xf32> -> tensor<6x5x13x4xf32>
// CHECK: %[[K:.*]] = nn.reshape %{{.*}} : tensor<1x6x5x13x4xf32> -> tensor<6x5x13x4xf32>
// CHECK-NEXT: %[[S:.*]] = nn.matmul %[[Q]], %[[K]] {transpose_rhs} : tensor<6x5x13x4xf32>, tensor<6x5x13x4xf32> -> tensor<6x5x13x13xf32>
// CHECK-NEXT: return %[[S]]
func.func @main(%x: tensor<3x6x5x13x4xf32>) -> tensor<6x5x13x13xf32> {
  %0 = nn.slice %x {starts = array<i64: 0, 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1, 1>} : tensor<3x6x5x13x4xf32> -> tensor<1x6x5x13x4xf32>
  %q = nn.reshape %0 : tensor<1x6x5x13x4xf32> -> tensor<6x5x13x4xf32>
  %1 = nn.slice %x {starts = array<i64: 1, 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1, 1>} : tensor<3x6x5x13x4xf32> -> tensor<1x6x5x13x4xf32>
  %k = nn.reshape %1 : tensor<1x6x5x13x4xf32> -> tensor<6x5x13x4xf32>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<6x5x13x4xf32>, tensor<6x5x13x4xf32> -> tensor<6x5x13x13xf32>
  return %s : tensor<6x5x13x13xf32>
}
