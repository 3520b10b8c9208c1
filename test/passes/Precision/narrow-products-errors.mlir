// RUN: not hpc-opt %s --hpc-narrow-products=dtype=fp8 2>&1 | FileCheck %s
// RUN: not hpc-opt %s --dtype=fp8 --compile-to=precision 2>&1 | FileCheck %s --check-prefix=FLAG

// A type that there is not: taken for another one, a program would compute something else.
// CHECK: [usage]{{.*}} dtype 'fp8' is unknown; use bf16 or fp16 for products of 16-bit operands that are added in f32, or model for the types that the model has
// FLAG: error[usage]: --dtype=fp8 is unknown; use model, bf16 or fp16; see hpc-opt --help
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x4xf32> {
  %y = nn.matmul %x, %x {transpose_rhs} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
