// RUN: not hpc-opt %s --hpc-emit-kernels=cpu=pentium 2>&1 | FileCheck %s
// CHECK: cpu=pentium is unknown; use host or x86-64-v3
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.fused "f_0" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = nn.exp %a : tensor<4xf32> -> tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
