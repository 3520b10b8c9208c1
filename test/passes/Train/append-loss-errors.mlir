// RUN: hpc-opt %s --hpc-append-loss -split-input-file -verify-diagnostics

// Of two the wrong one might be trained.
// expected-error @below {{--loss=causal-lm could be of the outputs 'a' (tensor<2x5x7xf32>), 'b' (tensor<2x5x7xf32>); say which: --loss=causal-lm:a}}
func.func @main(%x: tensor<2x5x7xf32> {nn.name = "x"}) -> (tensor<2x5x7xf32> {nn.name = "a"}, tensor<2x5x7xf32> {nn.name = "b"}) {
  return %x, %x : tensor<2x5x7xf32>, tensor<2x5x7xf32>
}

// -----

// A loss of integers has no slope.
// expected-error @below {{--loss=mse needs an output of floats; the model has 'a' (tensor<2xi64>)}}
func.func @main(%x: tensor<2xi64> {nn.name = "x"}) -> (tensor<2xi64> {nn.name = "a"}) {
  return %x : tensor<2xi64>
}

// -----

// Of one position there is no next token: the mean of nothing is NaN.
// expected-error @below {{output 'a' 'tensor<2x1x7xf32>' has no position with a next token; use sequences of 2 or more}}
func.func @main(%x: tensor<2x1x7xf32> {nn.name = "x"}) -> (tensor<2x1x7xf32> {nn.name = "a"}) {
  return %x : tensor<2x1x7xf32>
}

// -----

// An input of that name may be something else.
// expected-error @below {{input 'labels' of type 'tensor<2xf32>' must be 'tensor<2xi64>' for this loss}}
func.func @main(%x: tensor<2x7xf32> {nn.name = "x"}, %l: tensor<2xf32> {nn.name = "labels"}) -> (tensor<2x7xf32> {nn.name = "a"}) {
  return %x : tensor<2x7xf32>
}

// -----

// The mean over no element is NaN in every step.
// expected-error @below {{output 'a' 'tensor<0x3x2x2xf32>' has no element to compare}}
func.func @main(%x: tensor<0x3x2x2xf32> {nn.name = "x"}) -> (tensor<0x3x2x2xf32> {nn.name = "a"}) {
  return %x : tensor<0x3x2x2xf32>
}

// -----

// Nor is that of classes, of which there are rows to count.
// expected-error @below {{output 'a' 'tensor<0x7xf32>' has no element to compare; give larger dims}}
func.func @main(%x: tensor<0x7xf32> {nn.name = "x"}) -> (tensor<0x7xf32> {nn.name = "a"}) {
  return %x : tensor<0x7xf32>
}

// -----

// Of two losses of the model's own the user says which.
// expected-error @below {{--loss=output could be of the outputs 'fit' (tensor<f32>), 'penalty' (tensor<f32>); say which: --loss=output:fit}}
func.func @main(%x: tensor<2x7xf32> {nn.name = "x"}, %y: tensor<2x7xf32> {nn.name = "y"}) -> (tensor<f32> {nn.name = "fit"}, tensor<f32> {nn.name = "penalty"}, tensor<2x7xf32> {nn.name = "a"}) {
  %off = nn.sub %x, %y : tensor<2x7xf32>, tensor<2x7xf32> -> tensor<2x7xf32>
  %sum = nn.reduce sum %off {axes = array<i64: 0, 1>} : tensor<2x7xf32> -> tensor<1x1xf32>
  %fit = nn.reshape %sum : tensor<1x1xf32> -> tensor<f32>
  %penalty = nn.tanh %fit : tensor<f32> -> tensor<f32>
  return %fit, %penalty, %x : tensor<f32>, tensor<f32>, tensor<2x7xf32>
}
