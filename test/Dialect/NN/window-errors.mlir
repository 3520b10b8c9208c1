// RUN: hpc-opt %s -split-input-file -verify-diagnostics

// More strides than dims would index before the shape.
func.func @main(%x: tensor<9xf32>) -> tensor<3x3x1x1xf32> {
  // expected-error @+1 {{(C1) needs one stride and one dilation for each of 1 to 1 dims, got 2 and 2}}
  %0 = nn.window %x {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : tensor<9xf32> -> tensor<3x3x1x1xf32>
  return %0 : tensor<3x3x1x1xf32>
}

// -----

// No window at all: every index map would be empty.
func.func @main(%x: tensor<9xf32>) -> tensor<9xf32> {
  // expected-error @+1 {{(C1) needs one stride and one dilation for each of 1 to 1 dims, got 0 and 0}}
  %0 = nn.window %x {strides = array<i64>, dilations = array<i64>} : tensor<9xf32> -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

// A stride of 0 stands still, a negative one reads before the start.
func.func @main(%x: tensor<9xf32>) -> tensor<3x4xf32> {
  // expected-error @+1 {{(C1) strides and dilations are 1 or more}}
  %0 = nn.window %x {strides = array<i64: 0>, dilations = array<i64: 1>} : tensor<9xf32> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

// Leading dims stay: a batch of 4 has no fifth image.
func.func @main(%x: tensor<4x9xf32>) -> tensor<5x3x4xf32> {
  // expected-error @+1 {{(C2) result 'tensor<5x3x4xf32>' must have the 1 leading dims of the operand, then a size and a count for each window}}
  %0 = nn.window %x {strides = array<i64: 2>, dilations = array<i64: 1>} : tensor<4x9xf32> -> tensor<5x3x4xf32>
  return %0 : tensor<5x3x4xf32>
}

// -----

// (5 - 1) * 2 + (3 - 1) * 1 = 10 is not below 9: the last window would read the next row.
func.func @main(%x: tensor<4x9xf32>) -> tensor<4x3x5xf32> {
  // expected-error @+1 {{(C2) 5 windows of 3 in steps of 2, dilated by 1, reach behind dim 1 of size 9}}
  %0 = nn.window %x {strides = array<i64: 2>, dilations = array<i64: 1>} : tensor<4x9xf32> -> tensor<4x3x5xf32>
  return %0 : tensor<4x3x5xf32>
}

// -----

// The product of a stride and a count does not fit 64 bits; it is not below the dim all the same.
func.func @main(%x: tensor<4x9xf32>) -> tensor<4x3x5xf32> {
  // expected-error @+1 {{reach behind dim 1 of size 9}}
  %0 = nn.window %x {strides = array<i64: 4611686018427387904>, dilations = array<i64: 1>} : tensor<4x9xf32> -> tensor<4x3x5xf32>
  return %0 : tensor<4x3x5xf32>
}
