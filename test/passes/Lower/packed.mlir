// RUN: hpc-opt %s -o %t.plan && hpc-plan %t.plan | FileCheck %s

// A weight may be packed where products alone read it, all of it, in one form.

module attributes {dist.mesh = #dist.mesh<"tp=1:tensor">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x4xf32> {nn.name = "x"}, %y: tensor<3x7xf32> {nn.name = "y"}, %z: tensor<2x2x4xf32> {nn.name = "z"})
      -> (tensor<2x7xf32> {nn.name = "once"}, tensor<2x7xf32> {nn.name = "again"}, tensor<2x7xf32> {nn.name = "both"}, tensor<3x4xf32> {nn.name = "transposed"},
          tensor<2x2x5xf32> {nn.name = "batched"}, tensor<4x5xf32> {nn.name = "left"}, tensor<4x6xf32> {nn.name = "given"}) {
    %twice = nn.parameter "twice" {value = dense<1.0> : tensor<4x7xf32>} : tensor<4x7xf32>
    %tied = nn.parameter "tied" {value = dense<1.0> : tensor<4x7xf32>} : tensor<4x7xf32>
    %batch = nn.parameter "batch" {value = dense<1.0> : tensor<2x4x5xf32>} : tensor<2x4x5xf32>
    %square = nn.parameter "square" {value = dense<1.0> : tensor<4x4xf32>} : tensor<4x4xf32>
    %right = nn.parameter "right" {value = dense<1.0> : tensor<4x5xf32>} : tensor<4x5xf32>
    %stored = nn.parameter "stored" {value = dense<1.0> : tensor<4x6xf32>} : tensor<4x6xf32>
    // CHECK: gemm b[[ONCE:[0-9]+]] = b{{[0-9]+}} * packed b[[W:[0-9]+]], m 2, n 7
    %0 = nn.matmul %x, %twice : tensor<2x4xf32>, tensor<4x7xf32> -> tensor<2x7xf32>
    // CHECK: gemm b{{[0-9]+}} = b{{[0-9]+}} * packed b[[W]], m 2, n 7
    %1 = nn.matmul %x, %twice : tensor<2x4xf32>, tensor<4x7xf32> -> tensor<2x7xf32>
    // One product wants the weight as it is, the other transposed.
    // CHECK: gemm b{{[0-9]+}} = b{{[0-9]+}} * b[[T:[0-9]+]], m 2, n 7
    %2 = nn.matmul %x, %tied : tensor<2x4xf32>, tensor<4x7xf32> -> tensor<2x7xf32>
    // CHECK: gemm b{{[0-9]+}} = b{{[0-9]+}} * b[[T]]^T, m 3, n 4
    %3 = nn.matmul %y, %tied {transpose_rhs} : tensor<3x7xf32>, tensor<4x7xf32> -> tensor<3x4xf32>
    // Another matrix for each index of the batch.
    // CHECK: gemm b{{[0-9]+}} = b{{[0-9]+}} * b{{[0-9]+}}, m 2, n 5, k 4
    %4 = nn.matmul %z, %batch : tensor<2x2x4xf32>, tensor<2x4x5xf32> -> tensor<2x2x5xf32>
    // The left operand stays as it is, the right one is packed.
    // CHECK: gemm b{{[0-9]+}} = b{{[0-9]+}} * packed b{{[0-9]+}}, m 4, n 5, k 4
    %5 = nn.matmul %square, %right : tensor<4x4xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
    // An output is read too.
    // CHECK: gemm b{{[0-9]+}} = b{{[0-9]+}} * b[[S:[0-9]+]], m 4, n 6
    // CHECK: store output given = b[[S]]
    %6 = nn.matmul %square, %stored : tensor<4x4xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
    return %0, %1, %2, %3, %4, %5, %stored : tensor<2x7xf32>, tensor<2x7xf32>, tensor<2x7xf32>, tensor<3x4xf32>, tensor<2x2x5xf32>, tensor<4x5xf32>, tensor<4x6xf32>
  }
}
