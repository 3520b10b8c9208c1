// RUN: hpc-opt %s --hpc-verify-train -split-input-file -verify-diagnostics

// A gradient of another shape would be written into the wrong parameter's place.
// expected-error @below {{result 0 of type 'tensor<2xf32>' is the gradient of 'w' of type 'tensor<3xf32>'}}
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32> {nn.gradient = "w"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 12, hashes = [0]> : tensor<3xf32>
  return %x : tensor<2xf32>
}

// -----

// A gradient that nobody has would be lost.
// expected-error @below {{result 0 is the gradient of 'v', which is no parameter}}
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32> {nn.gradient = "v"}) {
  return %x : tensor<2xf32>
}

// -----

// Of two gradients one would win by chance.
// expected-error @below {{'w' has two gradients, the second is result 1}}
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32> {nn.gradient = "w"}, tensor<2xf32> {nn.gradient = "w"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 8, hashes = [0]> : tensor<2xf32>
  return %x, %x : tensor<2xf32>, tensor<2xf32>
}

// -----

// The ports of states are checked with them.
// expected-error @below {{result 0 writes 'w', which is neither a parameter nor a state}}
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32> {nn.writes = "w"}) {
  return %x : tensor<2xf32>
}

// -----

// The loop fills its numbers by name, and data come by name as well.
// expected-error @below {{[model] input 'lr' has the name of a number that the training loop gives in each step; rename the input in the model}}
func.func @main(%x: tensor<f32> {nn.name = "lr"}, %lr: tensor<f64> {nn.step_scalar = "lr"}) -> (tensor<f32> {nn.name = "loss"}) {
  return %x : tensor<f32>
}

// -----

// What is to be all of an input is that input's data.
// expected-error @below {{[model] argument 1 of type 'tensor<2xi64>' is to be all of input 'x', which is 'tensor<2xf32>'}}
func.func @main(%x: tensor<2xf32> {nn.name = "x"}, %all: tensor<2xi64> {nn.whole_of = "x"}) -> (tensor<2xf32> {nn.name = "loss"}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error @below {{[model] argument 1 of type 'tensor<2xf32>' is to be all of input 'y', which is not there}}
func.func @main(%x: tensor<2xf32> {nn.name = "x"}, %all: tensor<2xf32> {nn.whole_of = "y"}) -> (tensor<2xf32> {nn.name = "loss"}) {
  return %x : tensor<2xf32>
}
