// RUN: hpc-opt %s --hpc-decompose-composites --hpc-fuse-regions --hpc-emit-kernels --hpc-verify-kernels | FileCheck %s
// The whole phase leaves nothing that lower has no instruction for: what generated code claims stands inside regions.
// CHECK: func.func @main
// CHECK-NEXT: nn.fused "softmax
// CHECK: nn.yield
// CHECK-NEXT: }
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: return
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.softmax %x : tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = nn.matmul %0, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
