// RUN: hpc-opt %s "--hpc-append-optimizer=weight-decay=0.1 decay=w,bias*" -split-input-file -verify-diagnostics

// A pattern that matches nothing would leave a parameter without the decay that its user wants.
// expected-error @below {{[usage] --decay: 'bias*' matches no parameter that is trained; use all, matrices, or a pattern of names as hpc-opt --list-params shows them}}
func.func @main(%g: tensor<2xf32>) -> (tensor<2xf32> {nn.gradient = "w"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 8, hashes = [0]> : tensor<2xf32>
  return %g : tensor<2xf32>
}

// -----

// A gradient of what is no parameter has nothing to update.
// expected-error @below {{[model] a result of type 'tensor<2xf32>' is the gradient of 'v', which is no parameter of that type}}
func.func @main(%g: tensor<2xf32>) -> (tensor<2xf32> {nn.gradient = "v"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 8, hashes = [0]> : tensor<2xf32>
  return %g : tensor<2xf32>
}
