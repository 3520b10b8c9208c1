// RUN: hpc-opt %s -o %t.plan && hpc-plan %t.plan | FileCheck %s

// Leading dims that only the left operand has are rows of one product; where both have them they are batch dims; a broadcast one has stride 0. A wrong
// stride or leading dimension shows here before it shows as numbers.

module attributes {dist.mesh = #dist.mesh<"tp=1:tensor">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x3x4xf32> {nn.name = "x"}, %k: tensor<2x5x4xf32> {nn.name = "k"}, %b: tensor<1x4x6xf32> {nn.name = "b"}, %d: tensor<2x3xf64> {nn.name = "d"},
                  %h: tensor<2x3xbf16> {nn.name = "h"}, %p: tensor<2x3x4x5xf32> {nn.name = "p"}, %q: tensor<3x5x6xf32> {nn.name = "q"}, %r: tensor<2x1x5x6xf32> {nn.name = "r"},
                  %s: tensor<1x3x4x5xf32> {nn.name = "s"}, %u: tensor<2x3x5x6xf32> {nn.name = "u"}, %v: tensor<2x4x4xf32> {nn.name = "v"}, %one: tensor<4x6xf32> {nn.name = "one"})
      -> (tensor<2x3x7xf32> {nn.name = "rows"}, tensor<2x3x5xf32> {nn.name = "batched"}, tensor<2x5x6xf32> {nn.name = "broadcast"},
          tensor<2x2xf64> {nn.name = "wide"}, tensor<2x2xf32> {nn.name = "half"}, tensor<2x3x4x6xf32> {nn.name = "inner"}, tensor<2x3x4x6xf32> {nn.name = "outer"},
          tensor<2x3x4x6xf32> {nn.name = "left"}, tensor<2x4x6xf32> {nn.name = "turned"}, tensor<2x3x4x6xf32> {nn.name = "all"}) {
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
    // Two batch dims are one where all operands walk on evenly; where one broadcasts either of them, or is read turned, they stay apart.
    // CHECK: gemm {{.*}}m 4, n 6, k 5, ld 5 6 6{{.*}}batch [2, 3]{{.*}}[60, 20]{{.*}}[0, 30]{{.*}}[72, 24]
    %5 = nn.matmul %p, %q : tensor<2x3x4x5xf32>, tensor<3x5x6xf32> -> tensor<2x3x4x6xf32>
    // CHECK: gemm {{.*}}m 12, n 6, k 5, ld 5 6 6{{.*}}batch [2]{{.*}}[60]{{.*}}[30]{{.*}}[72]
    %6 = nn.matmul %p, %r : tensor<2x3x4x5xf32>, tensor<2x1x5x6xf32> -> tensor<2x3x4x6xf32>
    // CHECK: gemm {{.*}}m 4, n 6, k 5, ld 5 6 6{{.*}}batch [2, 3]{{.*}}[0, 20]{{.*}}[90, 30]{{.*}}[72, 24]
    %7 = nn.matmul %s, %u : tensor<1x3x4x5xf32>, tensor<2x3x5x6xf32> -> tensor<2x3x4x6xf32>
    // CHECK: gemm {{.*}}m 4, n 6, k 4, ld 4 6 6{{.*}}batch [2]{{.*}}[16]{{.*}}[0]{{.*}}[24]
    %8 = nn.matmul %v, %one {transpose_lhs} : tensor<2x4x4xf32>, tensor<4x6xf32> -> tensor<2x4x6xf32>
    // CHECK: gemm {{.*}}m 4, n 6, k 5, ld 5 6 6{{.*}}batch [6]{{.*}}[20]{{.*}}[30]{{.*}}[24]
    %9 = nn.matmul %p, %u : tensor<2x3x4x5xf32>, tensor<2x3x5x6xf32> -> tensor<2x3x4x6xf32>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<2x3x7xf32>, tensor<2x3x5xf32>, tensor<2x5x6xf32>, tensor<2x2xf64>, tensor<2x2xf32>, tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>,
        tensor<2x3x4x6xf32>, tensor<2x4x6xf32>, tensor<2x3x4x6xf32>
  }
}
