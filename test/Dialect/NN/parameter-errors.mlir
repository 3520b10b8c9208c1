// RUN: hpc-opt %s --split-input-file --verify-diagnostics

// A part beyond what is stored would read another weight's bytes.
func.func @beyond() -> tensor<4xf32> {
  // expected-error @+1 {{(C3) starts and shape of what is stored must have one entry for each of 1 dims, and the part must lie within what is stored}}
  %w = nn.parameter "w" stored <file = "f", bytes = 32, hashes = [1], shape = [8], starts = [5]> : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

func.func @alone() -> tensor<4xf32> {
  // expected-error @+1 {{(C3) starts and shape must come together, with one entry for each dim, and no start beyond its dim}}
  %w = nn.parameter "w" stored <file = "f", bytes = 32, hashes = [1], shape = [8]> : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

// `bytes` is what is stored, not the part.
func.func @bytes() -> tensor<4xf32> {
  // expected-error @+1 {{(C1) 'tensor<8xf32>' has 32 bytes, the source has 16}}
  %w = nn.parameter "w" stored <file = "f", bytes = 16, hashes = [1], shape = [8], starts = [4]> : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

// Only what loading weights can round may be said to be rounded there.
func.func @stored() -> tensor<4xbf16> {
  // expected-error @+1 {{(C4) only f32 is rounded when it is bound, and only to f16 or bf16, or i8 along a dim, only these are widened, to f32, and bytes to f16 or bf16; this is stored as 'f64' and bound as 'bf16'}}
  %w = nn.parameter "w" stored <file = "f", bytes = 32, hashes = [1], type = f64> : tensor<4xbf16>
  return %w : tensor<4xbf16>
}

// -----

// `bytes` is of elements as they are stored.
func.func @stored_bytes() -> tensor<4xbf16> {
  // expected-error @+1 {{(C1) 'tensor<4xf32>' has 16 bytes, the source has 8}}
  %w = nn.parameter "w" stored <file = "f", bytes = 8, hashes = [1], type = f32> : tensor<4xbf16>
  return %w : tensor<4xbf16>
}

// -----

// A scale for every line along a dim that there is not would be read from nowhere.
func.func @along() -> tensor<4x2xf32> {
  // expected-error @+1 {{(C5) int8_along must be one of the 2 dims of what is stored, which must be f32, and int8_size is of its scales alone, f32 too}}
  %w = nn.parameter "w" stored <file = "f", bytes = 32, hashes = [1], int8_along = 2> : tensor<4x2xf32>
  return %w : tensor<4x2xf32>
}

// -----

// Only f32 is coded when it is bound.
func.func @along_of_f64() -> tensor<4xf64> {
  // expected-error @+1 {{(C5) int8_along must be}}
  %w = nn.parameter "w" stored <file = "f", bytes = 32, hashes = [1], int8_along = 0> : tensor<4xf64>
  return %w : tensor<4xf64>
}

// -----

// Scales of the file's bytes, of which the type has one for each line.
func.func @scales() -> tensor<4xf32> {
  // expected-error @+1 {{(C1) 'tensor<3x4xf32>' has 48 bytes, the source has 32}}
  %w = nn.parameter "w" stored <file = "f", bytes = 32, hashes = [1], int8_along = 0, int8_size = 3> : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

// Codes without lines have no scales.
func.func @codes() -> tensor<4xi8> {
  // expected-error @+1 {{(C4) only f32 is rounded when it is bound}}
  %w = nn.parameter "w" stored <file = "f", bytes = 16, hashes = [1], type = f32> : tensor<4xi8>
  return %w : tensor<4xi8>
}

// -----

// A place in a file and numbers: which of both is it?
func.func @both() -> tensor<4xf32> {
  // expected-error @+1 {{(C2) has both a value and a place in a file}}
  %w = nn.parameter "w" stored <bytes = 16> {value = dense<1.0> : tensor<4xf32>} : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

func.func @before_the_file() -> tensor<4xf32> {
  // expected-error @+1 {{(C1) offset, bytes, int8_along and int8_size of a storage must not be negative}}
  %w = nn.parameter "w" stored <file = "f", offset = -8, bytes = 16> : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

func.func @hashes() -> tensor<4xf32> {
  // expected-error @+1 {{(C2) needs 1 hashes (one per MiB) or none, has 2}}
  %w = nn.parameter "w" stored <file = "f", bytes = 16, hashes = [1, 2]> : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

func.func @scales_of_nothing() -> tensor<4xf32> {
  // expected-error @+1 {{(C4) int8_size must stand beside int8_along}}
  %w = nn.parameter "w" stored <file = "f", bytes = 16, int8_size = 4> : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

// What a file of an older hpc-opt calls otherwise is not left out in silence.
func.func @old() -> tensor<4xf32> {
  // expected-error @+1 {{has no attribute 'file'; take it away, or write the file again with this hpc-opt}}
  %w = nn.parameter "w" {file = "f"} : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

func.func @names() -> tensor<4xf32> {
  // expected-error @+1 {{has no attribute 'tied_name'; is 'tied_names' meant?}}
  %w = nn.parameter "w" stored <file = "f", bytes = 16> {tied_name = ["v"]} : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

func.func @no_list() -> tensor<4xf32> {
  // expected-error @+1 {{attribute 'state_names' failed to satisfy constraint: string array attribute}}
  %w = nn.parameter "w" stored <file = "f", bytes = 16> {state_names = "v"} : tensor<4xf32>
  return %w : tensor<4xf32>
}
