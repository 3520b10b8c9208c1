// RUN: hpc-opt %s -o %t.plan && hpc-plan %t.plan | FileCheck %s

// Leading dims that only the left operand has are rows of one product; where both have them they are batch dims; a broadcast one has stride 0. A wrong
// stride or leading dimension shows here before it shows as numbers.

module attributes {dist.mesh = #dist.mesh<"tp=1:tensor">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x3x4xf32> {nn.name = "x"}, %k: tensor<2x5x4xf32> {nn.name = "k"}, %b: tensor<1x4x6xf32> {nn.name = "b"}, %d: tensor<2x3xf64> {nn.name = "d"},
                  %h: tensor<2x3xbf16> {nn.name = "h"})
      -> (tensor<2x3x7xf32> {nn.name = "rows"}, tensor<2x3x5xf32> {nn.name = "batched"}, tensor<2x5x6xf32> {nn.name = "broadcast"},
          tensor<2x2xf64> {nn.name = "wide"}, tensor<2x2xf32> {nn.name = "half"}) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<4x7xf32>} : tensor<4x7xf32>
    // CHECK: gemm b{{[0-9]+}} = b{{[0-9]+}} * packed b{{[0-9]+}}, m 6, n 7, k 4, ld 4 7 7
    %0 = nn.matmul %x, %w : tensor<2x3x4xf32>, tensor<4x7xf32> -> tensor<2x3x7xf32>
    // CHECK: gemm {{.*}}m 3, n 5, k 4, ld 4 4 5{{.*}}batch [2]{{.*}}[12]{{.*}}[20]{{.*}}[15]
    %1 = nn.matmul %x, %k {transpose_rhs} : tensor<2x3x4xf32>, tensor<2x5x4xf32> -> tensor<2x3x5xf32>
    // CHECK: gemm {{.*}}m 10, n 6, k 4, ld 4 6 6
    %2 = nn.matmul %k, %b : tensor<2x5x4xf32>, tensor<1x4x6xf32> -> tensor<2x5x6xf32>
    // Each operand has its own type, and the sum one that is as wide as any of them, f32 at least.
    // CHECK: gemm {{.*}}m 2, n 2, k 3, ld 3 3 2, f64 * f64 -> f64 in f64
    %3 = nn.matmul %d, %d {transpose_rhs} : tensor<2x3xf64>, tensor<2x3xf64> -> tensor<2x2xf64>
    // CHECK: gemm {{.*}}m 2, n 2, k 3, ld 3 3 2, bf16 * bf16 -> f32 in f32
    %4 = nn.matmul %h, %h {transpose_rhs} : tensor<2x3xbf16>, tensor<2x3xbf16> -> tensor<2x2xf32>
    return %0, %1, %2, %3, %4 : tensor<2x3x7xf32>, tensor<2x3x5xf32>, tensor<2x5x6xf32>, tensor<2x2xf64>, tensor<2x2xf32>
  }
}
