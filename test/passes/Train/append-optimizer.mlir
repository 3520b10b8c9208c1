// RUN: hpc-opt %s --split-input-file "--hpc-append-optimizer=optimizer=sgd" | FileCheck %s --check-prefix=SGD
// RUN: hpc-opt %s --split-input-file "--hpc-append-optimizer=optimizer=sgd momentum=0.5 nesterov=true" | FileCheck %s --check-prefix=NESTEROV
// RUN: hpc-opt %s --split-input-file "--hpc-append-optimizer=optimizer=adamw weight-decay=0.5 decay=matrices" | FileCheck %s --check-prefix=ADAMW
// RUN: hpc-opt %s --split-input-file "--hpc-append-optimizer=optimizer=adam weight-decay=0.5 decay=b*" | FileCheck %s --check-prefix=PATTERN

// The numbers that an optimizer makes are compared with PyTorch's formulas in test/unit/passes/Optimizers.cpp; here is what a step is made of.
// Plain SGD has no state and no count of steps; with a norm that is not finite the parameters stay; the factor of clipping is applied and is no result any more.
// SGD-LABEL: func.func @main
// SGD-SAME: %[[G:arg[0-9]+]]: tensor<2x3xf32>, %{{.*}}: tensor<3xf32>, %[[NORM:arg[0-9]+]]: tensor<f32>, %[[FACTOR:arg[0-9]+]]: tensor<f32>, %[[LR:arg[0-9]+]]: tensor<f64> {nn.step_scalar = "lr"})
// SGD-SAME: -> (tensor<2x3xf32> {nn.gradient = "w"}, tensor<3xf32> {nn.gradient = "b"}, tensor<f32> {nn.name = "gradient_norm"}, tensor<2x3xf32> {nn.writes = "w"}, tensor<3xf32> {nn.writes = "b"})
// SGD: %[[W:.*]] = nn.parameter "w"
// SGD: %[[INFINITY:.*]] = nn.constant dense<0x7F800000>
// SGD: %[[FINITE:.*]] = nn.compare lt %[[NORM]], %[[INFINITY]]
// SGD: %[[CLIPPED:.*]] = nn.mul %[[G]], %[[FACTOR]]
// SGD: %[[LR32:.*]] = nn.cast %[[LR]]
// SGD: %[[STEP:.*]] = nn.mul %[[CLIPPED]], %[[LR32]]
// SGD: %[[NEXT:.*]] = nn.sub %[[W]], %[[STEP]]
// SGD: nn.select %[[FINITE]], %[[NEXT]], %[[W]]

// NESTEROV-LABEL: func.func @main
// NESTEROV-SAME: {nn.initial = 0.000000e+00 : f64, nn.state = "momentum/w"}
// NESTEROV-SAME: {nn.writes = "momentum/w"}

// Bias is corrected in f64, once for all parameters: in f32 1 - 0.999 has four digits. Matrices decay, the vector does not.
// ADAMW-LABEL: func.func @main
// ADAMW-SAME: %[[STEP:arg[0-9]+]]: tensor<f64> {nn.step_scalar = "update"}
// ADAMW-SAME: nn.state = "adam.m/w"
// ADAMW-SAME: nn.state = "adam.v/w"
// ADAMW-SAME: nn.state = "adam.m/b"
// ADAMW: nn.pow %{{.*}}, %[[STEP]] : tensor<f64>, tensor<f64>
// ADAMW: nn.pow %{{.*}}, %[[STEP]] : tensor<f64>, tensor<f64>
// ADAMW-NOT: nn.pow
// ADAMW: dense<5.000000e-01>
// ADAMW-NOT: dense<5.000000e-01>

// The decay goes into the gradient of what the pattern matches, after clipping.
// PATTERN-LABEL: func.func @main
// PATTERN: %[[B:.*]] = nn.parameter "b"
// PATTERN: %[[HALF:.*]] = nn.constant dense<5.000000e-01>
// PATTERN: nn.mul %[[B]], %[[HALF]]
// PATTERN-NOT: dense<5.000000e-01>
// PATTERN: return
func.func @main(%gw: tensor<2x3xf32>, %gb: tensor<3xf32>, %norm: tensor<f32>, %factor: tensor<f32>)
    -> (tensor<2x3xf32> {nn.gradient = "w"}, tensor<3xf32> {nn.gradient = "b"}, tensor<f32> {nn.name = "gradient_norm"}, tensor<f32> {nn.name = "clip_factor"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 24, hashes = [0]> : tensor<2x3xf32>
  %b = nn.parameter "b" stored <file = "w", bytes = 12, hashes = [0]> : tensor<3xf32>
  return %gw, %gb, %norm, %factor : tensor<2x3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>
}

// -----

// A parameter in f16 is updated in f32, and so are its states kept: tenths of a unit in the last place would be lost in each step. Without a norm nothing is selected.
// ADAMW-LABEL: func.func @main
// ADAMW-SAME: tensor<2x2xf32> {nn.initial = 0.000000e+00 : f64, nn.state = "adam.m/bh"}
// ADAMW: nn.cast %{{.*}} : tensor<2x2xf16> -> tensor<2x2xf32>
// ADAMW: nn.sub {{.*}} : tensor<2x2xf32>
// ADAMW: nn.cast %{{.*}} : tensor<2x2xf32> -> tensor<2x2xf16>
// ADAMW-NOT: nn.select
func.func @main(%g: tensor<2x2xf16>) -> (tensor<2x2xf16> {nn.gradient = "bh"}) {
  %w = nn.parameter "bh" stored <file = "w", bytes = 8, hashes = [0]> : tensor<2x2xf16>
  return %g : tensor<2x2xf16>
}
