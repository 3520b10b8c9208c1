// RUN: hpc-opt %s -split-input-file -verify-diagnostics

// Rows of another size would be written beside those that are meant.
func.func @main(%state: tensor<2x8x4xf32>, %rows: tensor<2x3x5xf32>, %at: tensor<i64>) -> tensor<2x8x4xf32> {
  // expected-error @+1 {{(C1) rows 'tensor<2x3x5xf32>' must be as 'tensor<2x8x4xf32>', with at most 8 along dim 1}}
  %0 = nn.update_slice %state, %rows, %at {dim = 1 : i64} : tensor<2x8x4xf32>, tensor<2x3x5xf32>, tensor<i64> -> tensor<2x8x4xf32>
  return %0 : tensor<2x8x4xf32>
}

// -----

// More rows than the state has have no place.
func.func @main(%state: tensor<2x8xf32>, %rows: tensor<2x9xf32>, %at: tensor<i64>) -> tensor<2x8xf32> {
  // expected-error @+1 {{(C1) rows 'tensor<2x9xf32>' must be as 'tensor<2x8xf32>', with at most 8 along dim 1}}
  %0 = nn.update_slice %state, %rows, %at {dim = 1 : i64} : tensor<2x8xf32>, tensor<2x9xf32>, tensor<i64> -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

// A dim that is not there has no position.
func.func @main(%state: tensor<8xf32>, %rows: tensor<3xf32>, %at: tensor<i64>) -> tensor<8xf32> {
  // expected-error @+1 {{(C1) needs rows of the state's rank and a dim of it, got 'tensor<3xf32>' and dim 1}}
  %0 = nn.update_slice %state, %rows, %at {dim = 1 : i64} : tensor<8xf32>, tensor<3xf32>, tensor<i64> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A position of each row would be another op.
func.func @main(%state: tensor<8xf32>, %rows: tensor<3xf32>, %at: tensor<1xi64>) -> tensor<8xf32> {
  // expected-error @+1 {{(C2) position must be a tensor<i64>, got 'tensor<1xi64>'}}
  %0 = nn.update_slice %state, %rows, %at {dim = 0 : i64} : tensor<8xf32>, tensor<3xf32>, tensor<1xi64> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The last row would be behind the state.
func.func @main(%state: tensor<8xf32>, %rows: tensor<3xf32>) -> tensor<8xf32> {
  %at = nn.constant dense<6> : tensor<i64> : tensor<i64>
  // expected-error @+1 {{(C2) position 6 is not in 0 to 5}}
  %0 = nn.update_slice %state, %rows, %at {dim = 0 : i64} : tensor<8xf32>, tensor<3xf32>, tensor<i64> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The result is the state.
func.func @main(%state: tensor<8xf32>, %rows: tensor<3xf32>, %at: tensor<i64>) -> tensor<9xf32> {
  // expected-error @+1 {{(C3) result 'tensor<9xf32>' must have the state's type 'tensor<8xf32>'}}
  %0 = nn.update_slice %state, %rows, %at {dim = 0 : i64} : tensor<8xf32>, tensor<3xf32>, tensor<i64> -> tensor<9xf32>
  return %0 : tensor<9xf32>
}
