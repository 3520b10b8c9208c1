// RUN: hpc-opt %s --hpc-build-gradients -split-input-file -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s
// RUN: hpc-opt %s --hpc-build-gradients=scale-loss -split-input-file | FileCheck %s --check-prefix=SCALED

// Where the gradients of two means meet, each takes its own factor; the scale stays in them and its inverse beside them, or what f16 is scaled for would be lost on the
// rest of the way.
// SCALED-LABEL: func.func @main
// SCALED-SAME: %[[N:[a-z0-9]+]]: tensor<f32>, %[[M:[a-z0-9]+]]: tensor<f32>, %[[SCALE:[a-z0-9]+]]: tensor<f64> {nn.step_scalar = "loss_scale"}
// SCALED: nn.add
// SCALED: %[[PER_M:.*]] = nn.div %{{.*}}, %[[M]]
// SCALED: %[[FOUR:.*]] = nn.constant dense<4.000000e+00>
// SCALED: %[[M_FACTOR:.*]] = nn.mul %[[PER_M]], %[[FOUR]]
// SCALED: %[[PER_N:.*]] = nn.div %{{.*}}, %[[N]]
// SCALED: %[[N_FACTOR:.*]] = nn.mul %[[PER_N]],
// SCALED: %[[OF_M:.*]] = nn.mul %{{.*}}, %[[M_FACTOR]]
// SCALED: %[[INVERSE:.*]] = nn.div %{{.*}}, %[[SCALE]]
// SCALED: %[[OF_N:.*]] = nn.mul %{{.*}}, %[[N_FACTOR]]
// SCALED: %[[SUM:.*]] = nn.add %[[OF_M]], %[[OF_N]]
// SCALED: %[[DW:.*]] = nn.matmul %{{.*}}, %[[SUM]]
// SCALED: %[[NARROW:.*]] = nn.cast %[[INVERSE]]
// SCALED: nn.mul %[[DW]], %[[NARROW]]
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2x3xf32>, %n: tensor<f32>, %m: tensor<f32>) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 24, hashes = [0]> : tensor<3x2xf32>
  %y = nn.matmul %x, %w : tensor<2x3xf32>, tensor<3x2xf32> -> tensor<2x2xf32>
  %s1 = nn.reduce sum %y {axes = array<i64: 0, 1>} : tensor<2x2xf32> -> tensor<1x1xf32>
  %t1 = nn.reshape %s1 : tensor<1x1xf32> -> tensor<f32>
  %l1 = nn.div %t1, %n : tensor<f32>, tensor<f32> -> tensor<f32>
  %q = nn.mul %y, %y : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %s2 = nn.reduce sum %q {axes = array<i64: 0, 1>} : tensor<2x2xf32> -> tensor<1x1xf32>
  %t2 = nn.reshape %s2 : tensor<1x1xf32> -> tensor<f32>
  %l2 = nn.div %t2, %m : tensor<f32>, tensor<f32> -> tensor<f32>
  %loss = nn.add %l1, %l2 : tensor<f32>, tensor<f32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A number that is read twice has one factor, the sum of both, behind all micro-batches: backward does not read it.
// CHECK-LABEL: func.func @main
// CHECK: %[[SUM:.*]] = nn.add %{{.*}} loc(fused<"update">
// CHECK: %[[DW:.*]] = nn.matmul {{.*}} loc(fused<"gradient">
// CHECK: nn.mul %[[DW]], %{{.*}} loc(fused<"update">["w"
// SCALED-LABEL: func.func @main
func.func @main(%x: tensor<2x3xf32>) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 24, hashes = [0]> : tensor<3x2xf32>
  %y = nn.matmul %x, %w : tensor<2x3xf32>, tensor<3x2xf32> -> tensor<2x2xf32>
  %s = nn.reduce sum %y {axes = array<i64: 0, 1>} : tensor<2x2xf32> -> tensor<1x1xf32>
  %t = nn.reshape %s : tensor<1x1xf32> -> tensor<f32>
  %r = nn.sqrt %t : tensor<f32> -> tensor<f32>
  %loss = nn.add %t, %r : tensor<f32>, tensor<f32> -> tensor<f32>
  return %loss : tensor<f32>
}
