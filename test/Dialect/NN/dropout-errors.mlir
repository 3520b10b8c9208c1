// RUN: hpc-opt %s -split-input-file -verify-diagnostics

// (C1) A mask is of floats, and of the operand's shape.
func.func @main(%x: tensor<2x3xi32>, %s: tensor<f64>) -> tensor<2x3xi32> {
  // expected-error @+1 {{(C1) operand 'tensor<2x3xi32>' and result 'tensor<2x3xi32>' must be one type of floats}}
  %r = nn.dropout %x, %s, %s {site = 0 : i64, rate = 0.5 : f64} : tensor<2x3xi32>, tensor<f64>, tensor<f64> -> tensor<2x3xi32>
  return %r : tensor<2x3xi32>
}

// -----

// (C2) All dropped would be scaled by infinity.
func.func @main(%x: tensor<2x3xf32>, %s: tensor<f64>) -> tensor<2x3xf32> {
  // expected-error @+1 {{(C2) rate 1.000000e+00 must be at least 0 and less than 1, site 0 from 0 to 2^32 - 1}}
  %r = nn.dropout %x, %s, %s {site = 0 : i64, rate = 1.0 : f64} : tensor<2x3xf32>, tensor<f64>, tensor<f64> -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// (C2) A site that does not fit its word would be another's.
func.func @main(%x: tensor<2x3xf32>, %s: tensor<f64>) -> tensor<2x3xf32> {
  // expected-error @+1 {{(C2) rate 5.000000e-01 must be at least 0 and less than 1, site 4294967296 from 0 to 2^32 - 1}}
  %r = nn.dropout %x, %s, %s {site = 4294967296 : i64, rate = 0.5 : f64} : tensor<2x3xf32>, tensor<f64>, tensor<f64> -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// (C3) One seed for all.
func.func @main(%x: tensor<2x3xf32>, %s: tensor<2xf64>) -> tensor<2x3xf32> {
  // expected-error @+1 {{(C3) step and seed are one number each, got 'tensor<2xf64>'}}
  %r = nn.dropout %x, %s, %s {site = 0 : i64, rate = 0.5 : f64} : tensor<2x3xf32>, tensor<2xf64>, tensor<2xf64> -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// (C4) An offset of no dim would be added nowhere.
func.func @main(%x: tensor<2x3xf32>, %s: tensor<f64>, %o: tensor<i64>) -> tensor<2x3xf32> {
  // expected-error @+1 {{(C4) 1 offsets, of dims [2] of a whole tensor [4, 3], do not fit a tensor of rank 2}}
  %r = nn.dropout %x, %s, %s offsets %o : tensor<i64> {site = 0 : i64, rate = 0.5 : f64, global_shape = array<i64: 4, 3>, offset_dims = array<i64: 2>} : tensor<2x3xf32>, tensor<f64>, tensor<f64> -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// (C4) Without the whole shape nobody knows the global position.
func.func @main(%x: tensor<2x3xf32>, %s: tensor<f64>, %o: tensor<i64>) -> tensor<2x3xf32> {
  // expected-error @+1 {{(C4) 1 offsets, of dims [0] of a whole tensor [2, 3], do not fit a tensor of rank 2}}
  %r = nn.dropout %x, %s, %s offsets %o : tensor<i64> {site = 0 : i64, rate = 0.5 : f64, offset_dims = array<i64: 0>} : tensor<2x3xf32>, tensor<f64>, tensor<f64> -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// (C4) Positions are as many as their dim has indices.
func.func @positions(%x: tensor<2x3xf32>, %s: tensor<f64>, %p: tensor<3xi64>) -> tensor<2x3xf32> {
  // expected-error @+1 {{(C4) 1 offsets, of dims [0] of a whole tensor [2, 3], do not fit a tensor of rank 2}}
  %r = nn.dropout %x, %s, %s offsets %p : tensor<3xi64> {site = 0 : i64, rate = 0.5 : f64, offset_dims = array<i64: 0>} : tensor<2x3xf32>, tensor<f64>, tensor<f64> -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
