// RUN: hpc-opt %s --split-input-file --verify-diagnostics
// Passes take an attribute that they cannot read for absent, so the verifier of its dialect refuses it: by name, by place and by form.

// expected-error @below {{'dist.mesh' has to be a mesh, as #dist.mesh<"tp=2:tensor">, and is "tp=2"}}
module attributes {dist.mesh = "tp=2"} {}

// -----

// expected-error @below {{'hpc.target' has to be a string, and is 3 : i64}}
module attributes {hpc.target = 3 : i64} {}

// -----

// expected-error @below {{'hpc.kept_bytes' has to be a list of whole numbers, as array<i64: 1, 2>, and is 3 : i64}}
module attributes {hpc.kept_bytes = 3 : i64} {}

// -----

// expected-error @below {{'hpc.id' belongs to an op, not to a module}}
module attributes {hpc.id = 0 : i64} {}

// -----

// expected-error @below {{'pipe.schedule' has to be a list of strings, and is "F0"}}
func.func @main() attributes {pipe.schedule = "F0"} { return }

// -----

// expected-error @below {{no pass knows the attribute 'pipe.schedul'; is 'pipe.schedule' meant?}}
func.func @main() attributes {pipe.schedul = ["F0"]} { return }

// -----

// expected-error @below {{'nn.writes' belongs to a result, not to an argument}}
func.func @main(%x: tensor<4xf32> {nn.writes = "w"}) { return }

// -----

// expected-error @below {{'nn.initial' has to be a number, as 0.5 : f64, and is "0"}}
func.func @main(%x: tensor<4xf32> {nn.state = "m", nn.initial = "0"}) { return }

// -----

// A box of another rank would be that of another input.
// expected-error @below {{'nn.lookups' of argument 0 has to list lookups by its dims, as {begin = array<i64: 0>, end = array<i64: 4>, low = 0, high = 9, reader = "wte"}, and has {begin = array<i64: 0>}}
func.func @main(%x: tensor<4xi64> {nn.lookups = [{begin = array<i64: 0>}]}) { return }

// -----

// expected-error @below {{no pass knows the attribute 'dist.seeds'; is 'dist.seed' meant?}}
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32> {dist.seeds = 1 : i64}) { return %x : tensor<4xf32> }

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'dist.whole_output' names dim 1, which the op's first result does not have}}
  %0 = nn.exp %x {dist.whole_output = array<i64: 1>} : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'dist.origin' has to be a dictionary of strings, as {tp = ".."}, and is {tp = 1 : i64}}}
  %0 = nn.exp %x {dist.origin = {tp = 1 : i64}} : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'dist.factors' has to be a sharding, as #dist.sharding<"[4@tp, 6]">, and is "[4]"}}
  %0 = nn.exp %x {dist.factors = "[4]"} : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'hpc.block' has to be a whole number, as 3 : i64, and is "0"}}
  %0 = nn.exp %x {hpc.block = "0"} : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Slices are derived again from what they were globally: starts of another rank would be read beyond their end.
func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error @below {{'hpc.global' has to hold attributes that nn.slice has, of the same form, and has "starts" = array<i64: 0, 0>}}
  %0 = nn.slice %x {starts = array<i64: 0>, steps = array<i64: 1>, hpc.global = {starts = array<i64: 0, 0>}} : tensor<4xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// expected-error @below {{'nn.unread_parameters' holds {attributes = {..}, type = ..} of parameters, and not {attributes = {name = 1 : i64}, type = tensor<4xf32>}}}
module attributes {nn.unread_parameters = [{attributes = {name = 1 : i64}, type = tensor<4xf32>}]} {}

// -----

// expected-error @below {{(C1) 'tensor<4xf32>' has 16 bytes, the source has 8}}
module attributes {nn.unread_parameters = [{attributes = {name = "w", storage = #nn.storage<file = "f", bytes = 8>}, type = tensor<4xf32>}]} {}

// -----

// A misspelt name of an op's own attribute.
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{has no attribute 'transpose_lsh'; is 'transpose_lhs' meant?}}
  %0 = nn.matmul %x, %x {transpose_lsh} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has no attribute 'causes'; is 'cause' meant?}}
  %0 = dist.reshard %x {causes = "a"} : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
