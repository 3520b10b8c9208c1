// RUN: hpc-opt %s --split-input-file --hpc-clip-gradients=max-norm=2.0 | FileCheck %s
// RUN: hpc-opt %s --split-input-file --hpc-clip-gradients | FileCheck %s --check-prefix=MEASURE

// One norm over both gradients, in f32 though one of them is f16, and PyTorch's factor from it. A gradient that is left out, or squared before it is widened,
// gives a norm that is too small or infinite. The gradients themselves stay results as they are.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<4xf16>)
// CHECK-SAME: tensor<f32> {nn.name = "gradient_norm"}, tensor<f32> {nn.name = "clip_factor"})
// CHECK-DAG: %[[A2:.*]] = nn.mul %[[A]], %[[A]]
// CHECK-DAG: %[[AS:.*]] = nn.reduce sum %[[A2]] {axes = array<i64: 0, 1>}
// CHECK-DAG: %[[WIDE:.*]] = nn.cast %[[B]] : tensor<4xf16> -> tensor<4xf32>
// CHECK-DAG: %[[B2:.*]] = nn.mul %[[WIDE]], %[[WIDE]]
// CHECK-DAG: %[[BS:.*]] = nn.reduce sum %[[B2]] {axes = array<i64: 0>}
// CHECK: %[[SUM:.*]] = nn.add
// CHECK: %[[NORM:.*]] = nn.sqrt %[[SUM]]
// CHECK: %[[TINY:.*]] = nn.constant dense<9.99999997E-7>
// CHECK: %[[PADDED:.*]] = nn.add %[[NORM]], %[[TINY]]
// CHECK: %[[MOST:.*]] = nn.constant dense<2.000000e+00>
// CHECK: %[[RATIO:.*]] = nn.div %[[MOST]], %[[PADDED]]
// CHECK: %[[ONE:.*]] = nn.constant dense<1.000000e+00>
// CHECK: %[[FACTOR:.*]] = nn.min %[[RATIO]], %[[ONE]]
// CHECK: return %[[A]], %[[B]], %[[NORM]], %[[FACTOR]]
// MEASURE-LABEL: func.func @main
// MEASURE-NOT: clip_factor
// MEASURE-NOT: nn.min
func.func @main(%a: tensor<2x3xf32>, %b: tensor<4xf16>) -> (tensor<2x3xf32> {nn.gradient = "a"}, tensor<4xf16> {nn.gradient = "b"}) {
  return %a, %b : tensor<2x3xf32>, tensor<4xf16>
}

// -----

// Nothing is trained: nothing is measured.
// CHECK-LABEL: func.func @main
// CHECK-NOT: gradient_norm
// MEASURE-LABEL: func.func @main
// MEASURE-NOT: gradient_norm
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
