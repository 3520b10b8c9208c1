// RUN: hpc-opt %s --hpc-decompose-composites --hpc-fuse-regions --hpc-emit-kernels --hpc-verify-kernels | FileCheck %s
// The whole phase leaves nothing that lower has no instruction for.
// CHECK: nn.fused "softmax
// CHECK-NOT: nn.softmax
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.softmax %x : tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = nn.matmul %0, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
