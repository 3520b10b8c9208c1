// RUN: hpc-opt %s --hpc-split-stages="stages=2" | FileCheck %s
// RUN: hpc-opt %s --hpc-split-stages="stages=2 split=uniform" | FileCheck %s --check-prefix=UNIFORM

// Balanced is by cost: the first of three matmuls costs more than the others together, so it has a stage of its own. Uniform counts.
// CHECK: pipe.stage 0
// CHECK-COUNT-1: nn.matmul
// CHECK-NOT: nn.matmul
// CHECK: pipe.stage 1
// CHECK-COUNT-2: nn.matmul
// UNIFORM: pipe.stage 0
// UNIFORM-COUNT-2: nn.matmul
// UNIFORM: pipe.stage 1
// UNIFORM-COUNT-1: nn.matmul
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %a = nn.parameter "a" stored <file = "w", bytes = 1024, hashes = [1]> : tensor<4x64xf32>
  %b = nn.parameter "b" stored <file = "w", bytes = 512, hashes = [1]> : tensor<64x2xf32>
  %c = nn.parameter "c" stored <file = "w", bytes = 32, hashes = [1]> : tensor<2x4xf32>
  %p = nn.matmul %x, %a : tensor<2x4xf32>, tensor<4x64xf32> -> tensor<2x64xf32>
  %q = nn.matmul %p, %b : tensor<2x64xf32>, tensor<64x2xf32> -> tensor<2x2xf32>
  %r = nn.matmul %q, %c : tensor<2x2xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
