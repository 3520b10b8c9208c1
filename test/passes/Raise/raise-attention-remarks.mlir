// RUN: hpc-opt %s --hpc-raise-attention --split-input-file -verify-diagnostics | FileCheck %s

// A mask that is a weight without content may be causal, and nobody says so but the remark: one, however many layers have such masks.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-2: nn.attention {{.*}} bias
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %mask = nn.parameter "h.0.attn.bias" stored <file = "model.data", bytes = 64> : tensor<1x1x8x8xi1>
  %c = nn.slice %mask {starts = array<i64: 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<1x1x8x8xi1> -> tensor<1x1x3x3xi1>
  %bias = nn.select %c, %zero, %low : tensor<1x1x3x3xi1>, tensor<f32>, tensor<f32> -> tensor<1x1x3x3xf32>
  // expected-remark @below {{2 attentions are masked by weights whose content is not known here, the first by 'h.0.attn.bias': whether that is a causal mask is not known either}}
  %x = nn.attention %q, %k, %v bias %bias : tensor<1x1x3x3xf32> {scale = 0.5 : f64} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  %y = nn.attention %x, %k, %v bias %bias : tensor<1x1x3x3xf32> {scale = 0.5 : f64} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// What is known to be no causal mask, and numbers that are learned, are no reason for a remark.
// CHECK-LABEL: func.func @main(
// CHECK-COUNT-2: nn.attention {{.*}} bias
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %mask = nn.parameter "mask" stored <file = "model.data", bytes = 9, hashes = [7]> : tensor<1x1x3x3xi1>
  %learned = nn.parameter "relative" stored <file = "model.data", bytes = 36> : tensor<1x1x3x3xf32>
  %bias = nn.select %mask, %zero, %low : tensor<1x1x3x3xi1>, tensor<f32>, tensor<f32> -> tensor<1x1x3x3xf32>
  %x = nn.attention %q, %k, %v bias %bias : tensor<1x1x3x3xf32> {scale = 0.5 : f64} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  %y = nn.attention %x, %k, %v bias %learned : tensor<1x1x3x3xf32> {scale = 0.5 : f64} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}
