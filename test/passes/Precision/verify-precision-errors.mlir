// RUN: hpc-opt %s --hpc-verify-precision=dtype=bf16 -verify-diagnostics

// A product that was forgotten runs at a fraction of the speed that was asked for, and nothing else would show it.
func.func @main(%x: tensor<4x8xf32>, %z: tensor<4x8xbf16>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %u = nn.matmul %z, %z {transpose_rhs} : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x4xf32>
  // expected-error @unknown {{operand 0 of the product at node '/h/MatMul' is 'tensor<4x8xf32>', not 'bf16'; run hpc-narrow-products}}
  %y = nn.matmul %x, %x {transpose_rhs} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32> loc("/h/MatMul")
  return %u, %y : tensor<4x4xf32>, tensor<4x4xf32>
}
