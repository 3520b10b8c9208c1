// RUN: hpc-opt %s -split-input-file --hpc-decompose-composites | FileCheck %s

// Generated code computes attention whole, but for one whose tiles no stack holds: that leaves two matmuls and a softmax, which is claimed in turn. Ops know
// which composite they come from.
// CHECK-LABEL: @attention
// CHECK: nn.attention
// CHECK: nn.matmul %arg3, %arg3 {hpc.kernel_name = "attention", transpose_rhs}
// CHECK: nn.softmax
// CHECK: nn.matmul
// CHECK-NOT: nn.attention
func.func @attention(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>, %w: tensor<1x1x5x600xf32>) -> (tensor<1x2x5x4xf32>, tensor<1x1x5x600xf32>) {
  %0 = nn.attention %q, %k, %v {scale = 0.5 : f64} : tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x5x4xf32>
  %1 = nn.attention %w, %w, %w {scale = 0.5 : f64} : tensor<1x1x5x600xf32>, tensor<1x1x5x600xf32>, tensor<1x1x5x600xf32> -> tensor<1x1x5x600xf32>
  return %0, %1 : tensor<1x2x5x4xf32>, tensor<1x1x5x600xf32>
}

// Norms are claimed as well.
// CHECK-LABEL: @norms
// CHECK-NEXT: nn.layer_norm
// CHECK-NEXT: nn.rms_norm
// CHECK-NEXT: return
func.func @norms(%x: tensor<6x8xf32>, %w: tensor<8xf32>) -> tensor<6x8xf32> {
  %0 = nn.layer_norm %x weight %w : tensor<8xf32> {epsilon = 1.0e-5 : f64} : tensor<6x8xf32> -> tensor<6x8xf32>
  %1 = nn.rms_norm %0 weight %w : tensor<8xf32> {epsilon = 1.0e-5 : f64} : tensor<6x8xf32> -> tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}

// -----

// On a target without a column of its own all become their definitions, the softmax of an attention too.
module attributes {hpc.target = "unheard-of"} {
// CHECK-LABEL: @unclaimed
// CHECK: nn.reduce max {{.*}} {axes = array<i64: 3>, hpc.kernel_name = "softmax"}
// CHECK: nn.matmul
// CHECK-NOT: nn.softmax
// CHECK-NOT: nn.attention
func.func @unclaimed(%q: tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32> {
  %0 = nn.attention %q, %q, %q {scale = 0.5 : f64} : tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x5x4xf32>
  return %0 : tensor<1x2x5x4xf32>
}

// The result keeps the composite's sharding.
// CHECK-LABEL: @norm
// CHECK: nn.add {{.*}} -> tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">>
// CHECK-NEXT: return
func.func @norm(%x: tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">>, %w: tensor<8xf32>)
    -> tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">> {
  %0 = nn.layer_norm %x weight %w : tensor<8xf32> bias %w : tensor<8xf32> {epsilon = 1.0e-5 : f64}
    : tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">> -> tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">>
  return %0 : tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">>
}
}
