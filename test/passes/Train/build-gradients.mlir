// RUN: hpc-opt %s --hpc-build-gradients -split-input-file -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s
// RUN: hpc-opt %s --hpc-build-gradients=freeze=b -split-input-file | FileCheck %s --check-prefix=FROZEN
// RUN: hpc-opt %s --hpc-build-gradients=scale-loss -split-input-file | FileCheck %s --check-prefix=SCALED

// The factor 1 / count is no part of backward: it would have every micro-batch wait for all others. It is multiplied in where
// a gradient is complete, and belongs to the update.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<3x4xf32> {nn.gradient = "w"}
// CHECK-SAME: tensor<4xf32> {nn.gradient = "b"}
// CHECK: %[[FACTOR:.*]] = nn.div %{{.*}}, %[[COUNT:.*]] : tensor<f32>, tensor<f32> -> tensor<f32> loc(fused<"update">
// CHECK: %[[ONES:.*]] = nn.broadcast {{.*}} -> tensor<2x5x4xf32> loc(fused<"gradient">["sum"])
// CHECK: %[[DB:.*]] = nn.reshape {{.*}} -> tensor<4xf32> loc(fused<"gradient">["bias"])
// CHECK: %[[X:.*]] = nn.reshape {{.*}} -> tensor<10x3xf32> loc(fused<"gradient">["product"])
// CHECK: %[[DY:.*]] = nn.reshape %[[ONES]] {{.*}} -> tensor<10x4xf32> loc(fused<"gradient">["product"])
// CHECK: %[[DW:.*]] = nn.matmul %[[X]], %[[DY]] {transpose_lhs} {{.*}} loc(fused<"gradient">["product"])
// CHECK: %[[GW:.*]] = nn.mul %[[DW]], %[[FACTOR]] {{.*}} loc(fused<"update">["w"
// CHECK: %[[GB:.*]] = nn.mul %[[DB]], %[[FACTOR]] {{.*}} loc(fused<"update">["b"
// CHECK: return %{{.*}}, %[[GW]], %[[GB]]
// FROZEN-LABEL: func.func @main
// FROZEN-SAME: tensor<3x4xf32> {nn.gradient = "w"})
// FROZEN-NOT: nn.gradient
// FROZEN: return
// Backward starts from the scale over the 40 elements, 64 as a power of two; the factor has 64 / scale, or complete gradients would be scaled.
// SCALED-LABEL: func.func @main
// SCALED-SAME: %[[COUNT:[a-z0-9]+]]: tensor<f32>, %[[SCALE:[a-z0-9]+]]: tensor<f64> {nn.step_scalar = "loss_scale"}
// SCALED: nn.div %{{.*}}, %[[COUNT]]
// SCALED: %[[FACTOR:.*]] = nn.div %{{.*}}, %[[COUNT]]
// SCALED: %[[ELEMENTS:.*]] = nn.constant dense<6.400000e+01>
// SCALED: %[[INVERSE:.*]] = nn.div %[[ELEMENTS]],
// SCALED: %[[ALL:.*]] = nn.mul %[[FACTOR]], %[[INVERSE]]
// SCALED: %[[WIDE:.*]] = nn.cast %[[SCALE]]
// SCALED: %[[SHARE:.*]] = nn.constant dense<1.562500e-02>
// SCALED: %[[SEED:.*]] = nn.mul %[[WIDE]], %[[SHARE]]
// SCALED: nn.broadcast %[[SEED]] : tensor<f32> -> tensor<1x1x1xf32>
// SCALED: %[[DW:.*]] = nn.matmul
// SCALED: nn.mul %[[DW]], %[[ALL]]
func.func @main(%x: tensor<2x5x3xf32>, %count: tensor<f32>) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 48, hashes = [0]> : tensor<3x4xf32>
  %b = nn.parameter "b" stored <file = "w", bytes = 16, hashes = [0]> : tensor<4xf32>
  %y = nn.matmul %x, %w : tensor<2x5x3xf32>, tensor<3x4xf32> -> tensor<2x5x4xf32> loc("product")
  %z = nn.add %y, %b : tensor<2x5x4xf32>, tensor<4xf32> -> tensor<2x5x4xf32> loc("bias")
  %s = nn.reduce sum %z {axes = array<i64: 0, 1, 2>} : tensor<2x5x4xf32> -> tensor<1x1x1xf32> loc("sum")
  %sum = nn.reshape %s : tensor<1x1x1xf32> -> tensor<f32>
  %loss = nn.div %sum, %count : tensor<f32>, tensor<f32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Both terms of a parameter that is read twice count once; what the loss does not depend on has no gradient, and a
// parameter that is frozen costs nothing.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<2x2xf32> {nn.gradient = "w"}
// CHECK-NOT: nn.gradient
// CHECK: %[[SUM:.*]] = nn.add {{.*}} loc(fused<"gradient">
// CHECK: return %{{.*}}, %[[SUM]]
// FROZEN-LABEL: func.func @main
func.func @main() -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 16, hashes = [0]> : tensor<2x2xf32>
  %b = nn.parameter "b" stored <file = "w", bytes = 16, hashes = [0]> : tensor<2x2xf32>
  %c = nn.parameter "c" stored <file = "w", bytes = 32, hashes = [0]> : tensor<2x2xi64>
  %y = nn.matmul %w, %w : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %s = nn.reduce sum %y {axes = array<i64: 0, 1>} : tensor<2x2xf32> -> tensor<1x1xf32>
  %loss = nn.reshape %s : tensor<1x1xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nothing flows back through a detach, not even where the op behind it has no derivative; behind backward it is its operand.
// CHECK-LABEL: func.func @main
// CHECK-NOT: nn.detach
// CHECK: %[[Y:.*]] = nn.matmul
// CHECK: nn.mul %[[Y]], %[[Y]]
// CHECK-NOT: nn.detach
// CHECK: return
// FROZEN-LABEL: func.func @main
func.func @main(%x: tensor<2x3xf32>) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 24, hashes = [0]> : tensor<3x2xf32>
  %b = nn.parameter "b" stored <file = "w", bytes = 8, hashes = [0]> : tensor<2xf32>
  %y = nn.matmul %x, %w : tensor<2x3xf32>, tensor<3x2xf32> -> tensor<2x2xf32>
  %d = nn.detach %y : tensor<2x2xf32> -> tensor<2x2xf32>
  %p = nn.mul %d, %y : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %s = nn.reduce sum %p {axes = array<i64: 0, 1>} : tensor<2x2xf32> -> tensor<1x1xf32>
  %loss = nn.reshape %s : tensor<1x1xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The sidecar freezes too, the first rule that speaks of training decides, and --freeze adds to it: a rule for the cut (of u)
// decides nothing about training, and what is trained below a `false` is named before it. A name of a tied weight is a name.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<2x2xf32> {nn.gradient = "w"}, tensor<2xf32> {nn.gradient = "b"})
// FROZEN-LABEL: func.func @main
// FROZEN-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<2x2xf32> {nn.gradient = "w"})
module attributes {hpc.sidecar = {file = "s.json", text = "{\22version\22: 1, \22params\22: [{\22match\22: \22u\22, \22shard\22: []}, {\22match\22: \22head.*\22, \22trainable\22: true}, {\22match\22: \22b\22, \22shard\22: [], \22trainable\22: true}, {\22match\22: \22*\22, \22trainable\22: false}]}"}} {
  func.func @main(%x: tensor<2x2xf32>) -> (tensor<f32> {nn.name = "loss"}) {
    %u = nn.parameter "u" stored <file = "w", bytes = 16, hashes = [0]> : tensor<2x2xf32>
    %w = nn.parameter "w" stored <file = "w", bytes = 16, hashes = [0]> {aliases = ["head.weight"]} : tensor<2x2xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 8, hashes = [0]> : tensor<2xf32>
    %y = nn.matmul %x, %u : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
    %z = nn.matmul %y, %w : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
    %c = nn.add %z, %b : tensor<2x2xf32>, tensor<2xf32> -> tensor<2x2xf32>
    %s = nn.reduce sum %c {axes = array<i64: 0, 1>} : tensor<2x2xf32> -> tensor<1x1xf32>
    %loss = nn.reshape %s : tensor<1x1xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
