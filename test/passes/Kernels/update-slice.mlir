// RUN: hpc-opt %s --hpc-decompose-composites --hpc-fuse-regions --hpc-write-in-place | FileCheck %s

// A state is written where it is, with what makes the rows, and attention reads it there: nothing of the cache's size is made.
// CHECK-LABEL: @state
// CHECK: %[[K:.*]] = nn.fused "[[NAME:.*_over[0-9]]]"({{.*}}%[[STATE:arg[0-9]]]{{.*}}) {in_place = array<i64: [[#]]>} : ({{.*}}) -> tensor<2x2x8x4xf32>
// CHECK: nn.transpose
// CHECK: nn.update_slice
// CHECK: nn.fused "attention{{.*}}"({{.*}}%[[K]]
// CHECK-NOT: nn.gather
func.func @state(%q: tensor<2x2x1x4xf32>, %x: tensor<2x1x2x4xf32>, %k: tensor<2x2x8x4xf32> {nn.state = "k", nn.initial = 0.0 : f64}, %at: tensor<i64> {nn.step_scalar = "position", nn.largest = 7 : i64})
    -> (tensor<2x2x1x4xf32>, tensor<2x2x8x4xf32> {nn.writes = "k"}) {
  %e = nn.tanh %x : tensor<2x1x2x4xf32> -> tensor<2x1x2x4xf32>
  %r = nn.transpose %e {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x1x2x4xf32> -> tensor<2x2x1x4xf32>
  %n = nn.update_slice %k, %r, %at {dim = 2 : i64} : tensor<2x2x8x4xf32>, tensor<2x2x1x4xf32>, tensor<i64> -> tensor<2x2x8x4xf32>
  %y = nn.attention %q, %n, %n query_start %at : tensor<i64> {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<2x2x1x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32> -> tensor<2x2x1x4xf32>
  return %y, %n : tensor<2x2x1x4xf32>, tensor<2x2x8x4xf32>
}

// An input is nobody's to write: its next value is computed, by other ops.
// CHECK-LABEL: @input
// CHECK: nn.fused
// CHECK: nn.gather
// CHECK-NOT: nn.update_slice
func.func @input(%past: tensor<2x8xf32>, %rows: tensor<2x3xf32>) -> tensor<2x8xf32> {
  %at = nn.constant dense<4> : tensor<i64> : tensor<i64>
  %0 = nn.update_slice %past, %rows, %at {dim = 1 : i64} : tensor<2x8xf32>, tensor<2x3xf32>, tensor<i64> -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// Of a ring row i lies at (position + i) modulo the rows, whoever computes it.
// CHECK-LABEL: @ring
// CHECK: nn.update_slice {{.*}}wraps
// CHECK-LABEL: @past
// CHECK: nn.mod
// CHECK-NOT: nn.update_slice
func.func @ring(%rows: tensor<2x3xf32>, %k: tensor<2x8xf32> {nn.state = "k", nn.initial = 0.0 : f64}, %at: tensor<i64> {nn.step_scalar = "position", nn.largest = 97 : i64}) -> (tensor<2x8xf32> {nn.writes = "k"}) {
  %n = nn.update_slice %k, %rows, %at {dim = 1 : i64, wraps} : tensor<2x8xf32>, tensor<2x3xf32>, tensor<i64> -> tensor<2x8xf32>
  return %n : tensor<2x8xf32>
}
func.func @past(%rows: tensor<2x3xf32>, %k: tensor<2x8xf32>, %at: tensor<i64>) -> tensor<2x8xf32> {
  %n = nn.update_slice %k, %rows, %at {dim = 1 : i64, wraps} : tensor<2x8xf32>, tensor<2x3xf32>, tensor<i64> -> tensor<2x8xf32>
  return %n : tensor<2x8xf32>
}
