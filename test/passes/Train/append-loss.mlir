// RUN: hpc-opt %s --hpc-append-loss -split-input-file | FileCheck %s

// The shift is on the labels, so logits keep their shape; what only inference wants goes, and with it what it was for.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: tensor<2x5xi64> {nn.dims = ["batch", "time"], nn.name = "ids"}
// CHECK-SAME: %[[MASK:[a-z0-9]+]]: tensor<2x5xi64> {nn.name = "mask"}
// CHECK-SAME: %[[LABELS:[a-z0-9]+]]: tensor<2x5xi64> {nn.default_input = "ids", nn.dims = ["batch", "time"], nn.name = "labels"}
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "valid_tokens"})
// CHECK-NOT: nn.tanh
// CHECK: %[[NEXT:.*]] = nn.slice %[[LABELS]] {starts = array<i64: 0, 1>, {{.*}}-> tensor<2x4xi64>
// CHECK: %[[SHIFTED:.*]] = nn.pad %[[NEXT]] {high = array<i64: 0, 1>, low = array<i64: 0, 0>, value = -100 : i64}
// CHECK: %[[LOSS:.*]], %{{.*}}, %{{.*}} = nn.cross_entropy %{{.*}}, %[[SHIFTED]] : tensor<2x5x7xf32>
// CHECK: %[[COUNTS:.*]] = nn.compare ne %[[SHIFTED]]
// CHECK: %[[COUNT:.*]] = nn.reshape
// CHECK: %[[SUMS:.*]] = nn.reduce sum %[[LOSS]] {axes = array<i64: 0, 1>}
// CHECK: %[[SUM:.*]] = nn.reshape %[[SUMS]]
// CHECK: %[[MEAN:.*]] = nn.div %[[SUM]], %[[COUNT]]
// CHECK: return %[[MEAN]], %[[COUNT]]
func.func @main(%ids: tensor<2x5xi64> {nn.name = "ids", nn.dims = ["batch", "time"]}, %mask: tensor<2x5xi64> {nn.name = "mask"})
    -> (tensor<2x5x7xf32> {nn.name = "logits"}, tensor<2x1x5x3xf32> {nn.name = "present"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 84, hashes = [0]> : tensor<7x3xf32>
  %t = nn.parameter "t" stored <file = "w", bytes = 24, hashes = [0]> : tensor<2x3xf32>
  %e = nn.embedding %w, %ids {vocabulary = 7 : i64} : tensor<7x3xf32>, tensor<2x5xi64> -> tensor<2x5x3xf32>
  %m = nn.embedding %t, %mask {vocabulary = 2 : i64} : tensor<2x3xf32>, tensor<2x5xi64> -> tensor<2x5x3xf32>
  %s = nn.add %e, %m : tensor<2x5x3xf32>, tensor<2x5x3xf32> -> tensor<2x5x3xf32>
  %present = nn.tanh %e : tensor<2x5x3xf32> -> tensor<2x5x3xf32>
  %logits = nn.matmul %s, %w {transpose_rhs} : tensor<2x5x3xf32>, tensor<7x3xf32> -> tensor<2x5x7xf32>
  %r = nn.reshape %present : tensor<2x5x3xf32> -> tensor<2x1x5x3xf32>
  return %logits, %r : tensor<2x5x7xf32>, tensor<2x1x5x3xf32>
}

// -----

// Classes have no order: labels are compared as they are, one a row.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[LABELS:[a-z0-9]+]]: tensor<4xi64> {nn.dims = ["batch"], nn.name = "labels"}
// CHECK-NOT: nn.pad
// CHECK: nn.cross_entropy %{{.*}}, %[[LABELS]] : tensor<4x3xf32>
func.func @main(%x: tensor<4x3xf32> {nn.name = "x", nn.dims = ["batch", "3"]}) -> (tensor<4x3xf32> {nn.name = "scores"}) {
  return %x : tensor<4x3xf32>
}

// -----

// Numbers are compared by their squares; their count is no input of the step.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[LABELS:[a-z0-9]+]]: tensor<4x3x2x2xf32> {nn.dims = ["4", "3", "2", "2"], nn.name = "labels"}
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"})
// CHECK: %[[COUNT:.*]] = nn.constant dense<4.8
// CHECK: nn.div %{{.*}}, %[[COUNT]]
func.func @main(%x: tensor<4x3x2x2xf32> {nn.name = "x"}) -> (tensor<4x3x2x2xf32> {nn.name = "image"}) {
  return %x : tensor<4x3x2x2xf32>
}

// -----

// A model may end in a loss of its own.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"})
// CHECK: %[[LOSS:.*]] = nn.reshape %{{.*}} : tensor<1xf32> -> tensor<f32>
// CHECK: return %[[LOSS]]
func.func @main(%x: tensor<1xf32> {nn.name = "x"}) -> (tensor<1xf32> {nn.name = "own"}) {
  return %x : tensor<1xf32>
}

// -----

// Logits beside it do not make another loss of it: it reads labels, which they do not.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[LABELS:[a-z0-9]+]]: tensor<2x5xf32> {nn.name = "targets"}
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"})
// CHECK-NOT: nn.cross_entropy
// CHECK: %[[ERROR:.*]] = nn.sub %{{.*}}, %[[LABELS]]
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[ERROR]]
// CHECK: %[[LOSS:.*]] = nn.reshape %[[SUM]]
// CHECK: return %[[LOSS]]
func.func @main(%x: tensor<2x5xf32> {nn.name = "x"}, %labels: tensor<2x5xf32> {nn.name = "targets"})
    -> (tensor<1x1xf32> {nn.name = "own"}, tensor<2x5xf32> {nn.name = "scores"}) {
  %error = nn.sub %x, %labels : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
  %sum = nn.reduce sum %error {axes = array<i64: 0, 1>} : tensor<2x5xf32> -> tensor<1x1xf32>
  return %sum, %x : tensor<1x1xf32>, tensor<2x5xf32>
}

// -----

// One number that reads what the scores read is none: a temperature.
// CHECK-LABEL: func.func @main
// CHECK: nn.cross_entropy
func.func @main(%x: tensor<2x5xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "temperature"}, tensor<2x5xf32> {nn.name = "scores"}) {
  %sum = nn.reduce sum %x {axes = array<i64: 0, 1>} : tensor<2x5xf32> -> tensor<1x1xf32>
  %one = nn.reshape %sum : tensor<1x1xf32> -> tensor<f32>
  return %one, %x : tensor<f32>, tensor<2x5xf32>
}
