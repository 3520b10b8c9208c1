// RUN: hpc-opt %s --hpc-fuse-regions | FileCheck %s

// tanh and its later sum could be one region, exp and its sum another, but each would read through a product what the other makes: neither
// could run first. One pair stays apart.
// CHECK-COUNT-3: nn.fused
// CHECK-NOT: nn.fused
func.func @main(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %p = nn.tanh %x : tensor<4x4xf32> -> tensor<4x4xf32>
  %r = nn.exp %y : tensor<4x4xf32> -> tensor<4x4xf32>
  %a = nn.matmul %p, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %b = nn.matmul %r, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %q = nn.add %p, %b : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s = nn.add %r, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %q, %s : tensor<4x4xf32>, tensor<4x4xf32>
}
