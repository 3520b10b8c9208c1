// RUN: hpc-opt %s -split-input-file -verify-diagnostics

// A dim that is not there has no order.
func.func @main(%x: tensor<4xf32>) -> tensor<4xi64> {
  // expected-error @+1 {{(C1) axis 1 of 'tensor<4xf32>'}}
  %0 = nn.sort_position %x {axis = 1 : i64} : tensor<4xf32> -> tensor<4xi64>
  return %0 : tensor<4xi64>
}

// -----

// Positions of rows as long as an i8 cannot count would wrap.
func.func @main(%x: tensor<4xf32>) -> tensor<4xi8> {
  // expected-error @+1 {{(C2) result 'tensor<4xi8>' must be i64 of the shape of 'tensor<4xf32>'}}
  %0 = nn.sort_position %x {axis = 0 : i64} : tensor<4xf32> -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// -----

// Bits of half the width would be of half the elements.
func.func @main(%x: tensor<4xf32>) -> tensor<4xi16> {
  // expected-error @+1 {{(C2) 'f32' and 'i16' must be numbers of as many bits}}
  %0 = nn.bitcast %x : tensor<4xf32> -> tensor<4xi16>
  return %0 : tensor<4xi16>
}

// -----

// Bits do not broadcast.
func.func @main(%x: tensor<1xf32>) -> tensor<4xi32> {
  // expected-error @+1 {{(C1) 'tensor<1xf32>' and 'tensor<4xi32>' must have one shape}}
  %0 = nn.bitcast %x : tensor<1xf32> -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
