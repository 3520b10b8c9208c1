// RUN: hpc-opt %s --hpc-raise-layer-norm --split-input-file | FileCheck %s

// The tracing exporter's spelling (opset 13), weight and bias included; a part left out would stay as nine ops and block a cut of the batch.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x4xf32>, %[[W:[^:]*]]: tensor<4xf32>, %[[B:[^:]*]]: tensor<4xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.layer_norm %[[X]] weight %[[W]] : tensor<4xf32> bias %[[B]] : tensor<4xf32> {epsilon = {{9.99.*E-6|9.99.*e-06}}{{.*}}}
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<2x3x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %n = nn.constant dense<0.25> : tensor<f32> : tensor<f32>
  %two = nn.constant dense<2.0> : tensor<f32> : tensor<f32>
  %epsilon = nn.constant dense<9.99999974E-6> : tensor<f32> : tensor<f32>
  %sum = nn.reduce sum %x {axes = array<i64: 2>} : tensor<2x3x4xf32> -> tensor<2x3x1xf32>
  %mean = nn.mul %sum, %n : tensor<2x3x1xf32>, tensor<f32> -> tensor<2x3x1xf32>
  %centered = nn.sub %x, %mean : tensor<2x3x4xf32>, tensor<2x3x1xf32> -> tensor<2x3x4xf32>
  %square = nn.pow %centered, %two : tensor<2x3x4xf32>, tensor<f32> -> tensor<2x3x4xf32>
  %sum2 = nn.reduce sum %square {axes = array<i64: 2>} : tensor<2x3x4xf32> -> tensor<2x3x1xf32>
  %variance = nn.mul %sum2, %n : tensor<2x3x1xf32>, tensor<f32> -> tensor<2x3x1xf32>
  %shifted = nn.add %variance, %epsilon : tensor<2x3x1xf32>, tensor<f32> -> tensor<2x3x1xf32>
  %deviation = nn.sqrt %shifted : tensor<2x3x1xf32> -> tensor<2x3x1xf32>
  %normal = nn.div %centered, %deviation : tensor<2x3x4xf32>, tensor<2x3x1xf32> -> tensor<2x3x4xf32>
  %scaled = nn.mul %normal, %w : tensor<2x3x4xf32>, tensor<4xf32> -> tensor<2x3x4xf32>
  %y = nn.add %scaled, %b : tensor<2x3x4xf32>, tensor<4xf32> -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// RMS norm: mean by division, square by mul, 1/sqrt by reciprocal, weight on the left with leading dims of size 1.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<3x4xf32>
// CHECK: %[[W:.*]] = nn.reshape %{{.*}} : tensor<1x4xf32> -> tensor<4xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.rms_norm %[[X]] weight %[[W]]
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<3x4xf32>, %w: tensor<1x4xf32>) -> tensor<3x4xf32> {
  %n = nn.constant dense<4.0> : tensor<f32> : tensor<f32>
  %epsilon = nn.constant dense<1.0E-5> : tensor<f32> : tensor<f32>
  %square = nn.mul %x, %x : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  %sum = nn.reduce sum %square {axes = array<i64: 1>} : tensor<3x4xf32> -> tensor<3x1xf32>
  %mean = nn.div %sum, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %shifted = nn.add %epsilon, %mean : tensor<f32>, tensor<3x1xf32> -> tensor<3x1xf32>
  %root = nn.sqrt %shifted : tensor<3x1xf32> -> tensor<3x1xf32>
  %inverse = nn.reciprocal %root : tensor<3x1xf32> -> tensor<3x1xf32>
  %normal = nn.mul %x, %inverse : tensor<3x4xf32>, tensor<3x1xf32> -> tensor<3x4xf32>
  %y = nn.mul %w, %normal : tensor<1x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// pow(variance + epsilon, -1/2), no weight, and a bias that only a second use of the norm keeps out.
// CHECK-LABEL: func.func @main(
// CHECK: %[[N:.*]] = nn.rms_norm %{{[^ ]*}} {epsilon
// CHECK-NEXT: %[[Y:.*]] = nn.mul %[[N]]
// CHECK-NEXT: return %[[N]], %[[Y]]
func.func @main(%x: tensor<3x4xf32>, %w: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %n = nn.constant dense<0.25> : tensor<f32> : tensor<f32>
  %power = nn.constant dense<-0.5> : tensor<f32> : tensor<f32>
  %epsilon = nn.constant dense<1.0E-5> : tensor<f32> : tensor<f32>
  %square = nn.mul %x, %x : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  %sum = nn.reduce sum %square {axes = array<i64: 1>} : tensor<3x4xf32> -> tensor<3x1xf32>
  %mean = nn.mul %n, %sum : tensor<f32>, tensor<3x1xf32> -> tensor<3x1xf32>
  %shifted = nn.add %mean, %epsilon : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %inverse = nn.pow %shifted, %power : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %normal = nn.mul %inverse, %x : tensor<3x1xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  %y = nn.mul %normal, %w : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x4xf32>
  return %normal, %y : tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// Not a norm: the unbiased variance (1/3 for 4 elements) would be off by 15 %.
// CHECK-LABEL: func.func @main
// CHECK-NOT: rms_norm
// CHECK: nn.div
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %n = nn.constant dense<0.333333333> : tensor<f32> : tensor<f32>
  %epsilon = nn.constant dense<1.0E-5> : tensor<f32> : tensor<f32>
  %square = nn.mul %x, %x : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  %sum = nn.reduce sum %square {axes = array<i64: 1>} : tensor<3x4xf32> -> tensor<3x1xf32>
  %mean = nn.mul %sum, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %shifted = nn.add %mean, %epsilon : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %root = nn.sqrt %shifted : tensor<3x1xf32> -> tensor<3x1xf32>
  %y = nn.div %x, %root : tensor<3x4xf32>, tensor<3x1xf32> -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// f16 as the import writes a mean of it: in f32, rounded once. The norm's definition has the same.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<3x4xf16>
// CHECK-NEXT: %[[Y:.*]] = nn.layer_norm %[[X]] {epsilon
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<3x4xf16>) -> tensor<3x4xf16> {
  %n = nn.constant dense<4.0> : tensor<f32> : tensor<f32>
  %epsilon = nn.constant dense<0.25> : tensor<f16> : tensor<f16>
  %wide = nn.cast %x : tensor<3x4xf16> -> tensor<3x4xf32>
  %sum = nn.reduce sum %wide {axes = array<i64: 1>} : tensor<3x4xf32> -> tensor<3x1xf32>
  %quotient = nn.div %sum, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %mean = nn.cast %quotient : tensor<3x1xf32> -> tensor<3x1xf16>
  %centered = nn.sub %x, %mean : tensor<3x4xf16>, tensor<3x1xf16> -> tensor<3x4xf16>
  %square = nn.mul %centered, %centered : tensor<3x4xf16>, tensor<3x4xf16> -> tensor<3x4xf16>
  %squares = nn.cast %square : tensor<3x4xf16> -> tensor<3x4xf32>
  %total = nn.reduce sum %squares {axes = array<i64: 1>} : tensor<3x4xf32> -> tensor<3x1xf32>
  %share = nn.div %total, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %variance = nn.cast %share : tensor<3x1xf32> -> tensor<3x1xf16>
  %shifted = nn.add %variance, %epsilon : tensor<3x1xf16>, tensor<f16> -> tensor<3x1xf16>
  %root = nn.sqrt %shifted : tensor<3x1xf16> -> tensor<3x1xf16>
  %y = nn.div %centered, %root : tensor<3x4xf16>, tensor<3x1xf16> -> tensor<3x4xf16>
  return %y : tensor<3x4xf16>
}

// -----

// A second weight or bias stays: a norm has one of each. The root as a power, its inverse by a division.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<3x4xf32>, %[[W:[^:]*]]: tensor<4xf32>, %[[U:[^:]*]]: tensor<4xf32>
// CHECK: %[[N:.*]] = nn.rms_norm %[[X]] weight %[[W]]
// CHECK: %[[FIRST:.*]] = nn.mul %[[N]], %[[U]]
// CHECK: %[[M:.*]] = nn.layer_norm %[[X]] bias %[[W]]
// CHECK: %[[SECOND:.*]] = nn.add %[[M]], %[[U]]
// CHECK: return %[[FIRST]], %[[SECOND]]
func.func @main(%x: tensor<3x4xf32>, %w: tensor<4xf32>, %u: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %n = nn.constant dense<4.0> : tensor<f32> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
  %epsilon = nn.constant dense<1.0E-5> : tensor<f32> : tensor<f32>
  %square = nn.mul %x, %x : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  %sum = nn.reduce sum %square {axes = array<i64: 1>} : tensor<3x4xf32> -> tensor<3x1xf32>
  %share = nn.div %sum, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %shifted = nn.add %share, %epsilon : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %root = nn.sqrt %shifted : tensor<3x1xf32> -> tensor<3x1xf32>
  %inverse = nn.div %one, %root : tensor<f32>, tensor<3x1xf32> -> tensor<3x1xf32>
  %normal = nn.mul %x, %inverse : tensor<3x4xf32>, tensor<3x1xf32> -> tensor<3x4xf32>
  %weighted = nn.mul %normal, %w : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x4xf32>
  %first = nn.mul %weighted, %u : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x4xf32>
  %all = nn.reduce sum %x {axes = array<i64: 1>} : tensor<3x4xf32> -> tensor<3x1xf32>
  %mean = nn.div %all, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %centered = nn.sub %x, %mean : tensor<3x4xf32>, tensor<3x1xf32> -> tensor<3x4xf32>
  %squares = nn.mul %centered, %centered : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  %sums = nn.reduce sum %squares {axes = array<i64: 1>} : tensor<3x4xf32> -> tensor<3x1xf32>
  %variance = nn.div %sums, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %above = nn.add %variance, %epsilon : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %deviation = nn.pow %above, %half : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %ratio = nn.div %centered, %deviation : tensor<3x4xf32>, tensor<3x1xf32> -> tensor<3x4xf32>
  %biased = nn.add %ratio, %w : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x4xf32>
  %second = nn.add %biased, %u : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x4xf32>
  return %first, %second : tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// A norm along another dim than the last, of as many elements, and one whose epsilon is negative.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.rms_norm
func.func @main(%x: tensor<2x4x4xf32>, %z: tensor<3x4xf32>) -> (tensor<2x4x4xf32>, tensor<3x4xf32>) {
  %n = nn.constant dense<4.0> : tensor<f32> : tensor<f32>
  %epsilon = nn.constant dense<1.0E-5> : tensor<f32> : tensor<f32>
  %negative = nn.constant dense<-1.0E-5> : tensor<f32> : tensor<f32>
  %square = nn.mul %x, %x : tensor<2x4x4xf32>, tensor<2x4x4xf32> -> tensor<2x4x4xf32>
  %sum = nn.reduce sum %square {axes = array<i64: 1>} : tensor<2x4x4xf32> -> tensor<2x1x4xf32>
  %share = nn.div %sum, %n : tensor<2x1x4xf32>, tensor<f32> -> tensor<2x1x4xf32>
  %shifted = nn.add %share, %epsilon : tensor<2x1x4xf32>, tensor<f32> -> tensor<2x1x4xf32>
  %root = nn.sqrt %shifted : tensor<2x1x4xf32> -> tensor<2x1x4xf32>
  %first = nn.div %x, %root : tensor<2x4x4xf32>, tensor<2x1x4xf32> -> tensor<2x4x4xf32>
  %squares = nn.mul %z, %z : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  %sums = nn.reduce sum %squares {axes = array<i64: 1>} : tensor<3x4xf32> -> tensor<3x1xf32>
  %shares = nn.div %sums, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %below = nn.add %shares, %negative : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %roots = nn.sqrt %below : tensor<3x1xf32> -> tensor<3x1xf32>
  %second = nn.div %z, %roots : tensor<3x4xf32>, tensor<3x1xf32> -> tensor<3x4xf32>
  return %first, %second : tensor<2x4x4xf32>, tensor<3x4xf32>
}
