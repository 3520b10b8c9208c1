// RUN: hpc-opt %s -o %t.plan && hpc-plan %t.plan | FileCheck %s

// Leading dims that only the left operand has are rows of one product; where both have them they are batch dims; a broadcast one has stride 0. A wrong
// stride or leading dimension shows here before it shows as numbers.

module attributes {dist.mesh = #dist.mesh<"tp=1:tensor">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x3x4xf32> {nn.name = "x"}, %k: tensor<2x5x4xf32> {nn.name = "k"}, %b: tensor<1x4x6xf32> {nn.name = "b"})
      -> (tensor<2x3x7xf32> {nn.name = "rows"}, tensor<2x3x5xf32> {nn.name = "batched"}, tensor<2x5x6xf32> {nn.name = "broadcast"}) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<4x7xf32>} : tensor<4x7xf32>
    // CHECK: gemm b{{[0-9]+}} = b{{[0-9]+}} * b{{[0-9]+}}, m 6, n 7, k 4, ld 4 7 7
    %0 = nn.matmul %x, %w : tensor<2x3x4xf32>, tensor<4x7xf32> -> tensor<2x3x7xf32>
    // CHECK: gemm {{.*}}m 3, n 5, k 4, ld 4 4 5{{.*}}batch [2]{{.*}}[12]{{.*}}[20]{{.*}}[15]
    %1 = nn.matmul %x, %k {transpose_rhs} : tensor<2x3x4xf32>, tensor<2x5x4xf32> -> tensor<2x3x5xf32>
    // CHECK: gemm {{.*}}m 10, n 6, k 4, ld 4 6 6
    %2 = nn.matmul %k, %b : tensor<2x5x4xf32>, tensor<1x4x6xf32> -> tensor<2x5x6xf32>
    return %0, %1, %2 : tensor<2x3x7xf32>, tensor<2x3x5xf32>, tensor<2x5x6xf32>
  }
}
