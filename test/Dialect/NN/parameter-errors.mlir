// RUN: hpc-opt %s --split-input-file --verify-diagnostics

// A part beyond what is stored would read another weight's bytes.
func.func @beyond() -> tensor<4xf32> {
  // expected-error @+1 {{(C4) part_starts and stored_shape must come together, with one entry for each of 1 dims, and the part must lie within what is stored}}
  %w = nn.parameter "w" {file = "f", bytes = 32 : i64, hashes = array<i64: 1>, part_starts = array<i64: 5>, stored_shape = array<i64: 8>} : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

func.func @alone() -> tensor<4xf32> {
  // expected-error @+1 {{(C4) part_starts}}
  %w = nn.parameter "w" {file = "f", bytes = 32 : i64, hashes = array<i64: 1>, stored_shape = array<i64: 8>} : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

// `bytes` is what is stored, not the part.
func.func @bytes() -> tensor<4xf32> {
  // expected-error @+1 {{(C1) 'tensor<8xf32>' has 32 bytes, the source has 16}}
  %w = nn.parameter "w" {file = "f", bytes = 16 : i64, hashes = array<i64: 1>, part_starts = array<i64: 4>, stored_shape = array<i64: 8>} : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

// Only what loading weights can round may be said to be rounded there.
func.func @stored() -> tensor<4xbf16> {
  // expected-error @+1 {{(C5) only f32 is rounded when it is bound, and only to f16 or bf16, or i8 along a dim, only these are widened, to f32, and bytes to f16 or bf16; this is stored as 'f64' and bound as 'bf16'}}
  %w = nn.parameter "w" {file = "f", bytes = 32 : i64, hashes = array<i64: 1>, stored_type = f64} : tensor<4xbf16>
  return %w : tensor<4xbf16>
}

// -----

// `bytes` is of elements as they are stored.
func.func @stored_bytes() -> tensor<4xbf16> {
  // expected-error @+1 {{(C1) 'tensor<4xf32>' has 16 bytes, the source has 8}}
  %w = nn.parameter "w" {file = "f", bytes = 8 : i64, hashes = array<i64: 1>, stored_type = f32} : tensor<4xbf16>
  return %w : tensor<4xbf16>
}

// -----

// A scale for every line along a dim that there is not would be read from nowhere.
func.func @along() -> tensor<4x2xf32> {
  // expected-error @+1 {{nn.int8_along must be one of the 2 dims of what is stored, which must be f32, and nn.int8_size is of its scales alone, f32 too}}
  %w = nn.parameter "w" {file = "f", bytes = 32 : i64, hashes = array<i64: 1>, nn.int8_along = 2 : i64} : tensor<4x2xf32>
  return %w : tensor<4x2xf32>
}

// -----

// Only f32 is coded when it is bound.
func.func @along_of_f64() -> tensor<4xf64> {
  // expected-error @+1 {{nn.int8_along must be}}
  %w = nn.parameter "w" {file = "f", bytes = 32 : i64, hashes = array<i64: 1>, nn.int8_along = 0 : i64} : tensor<4xf64>
  return %w : tensor<4xf64>
}

// -----

// Scales of the file's bytes, of which the type has one for each line.
func.func @scales() -> tensor<4xf32> {
  // expected-error @+1 {{(C1) 'tensor<3x4xf32>' has 48 bytes, the source has 32}}
  %w = nn.parameter "w" {file = "f", bytes = 32 : i64, hashes = array<i64: 1>, nn.int8_along = 0 : i64, nn.int8_size = 3 : i64} : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

// Codes without lines have no scales.
func.func @codes() -> tensor<4xi8> {
  // expected-error @+1 {{(C5) only f32 is rounded when it is bound}}
  %w = nn.parameter "w" {file = "f", bytes = 16 : i64, hashes = array<i64: 1>, stored_type = f32} : tensor<4xi8>
  return %w : tensor<4xi8>
}
