// RUN: hpc-opt %s --hpc-decompose-composites | FileCheck %s

// Attention's softmax is decomposed as well, and what remains are two matmuls; ops know which composite they come from.
// CHECK-LABEL: @attention
// CHECK: nn.matmul %arg0, %arg1 {kernel_name = "attention", transpose_rhs}
// CHECK: nn.reduce max {{.*}} {axes = array<i64: 3>, kernel_name = "softmax"}
// CHECK: nn.matmul
// CHECK-NOT: nn.softmax
// CHECK-NOT: nn.attention
func.func @attention(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32> {
  %0 = nn.attention %q, %k, %v {scale = 0.5 : f64} : tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x5x4xf32>
  return %0 : tensor<1x2x5x4xf32>
}

// The result keeps the composite's sharding.
// CHECK-LABEL: @norm
// CHECK: nn.add {{.*}} -> tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">>
// CHECK-NEXT: return
func.func @norm(%x: tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">>, %w: tensor<8xf32>) -> tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">> {
  %0 = nn.layer_norm %x weight %w : tensor<8xf32> bias %w : tensor<8xf32> {epsilon = 1.0e-5 : f64}
    : tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">> -> tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">>
  return %0 : tensor<3x8xf32, #dist.sharding<"[6@dp, 8]">>
}
