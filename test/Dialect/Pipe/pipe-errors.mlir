// RUN: hpc-opt %s --split-input-file -verify-diagnostics

// (C1) of stage: what goes in is what the body sees.
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{(C1) block arguments must have the operands' types}}
  %y = pipe.stage 0 forward(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<3xf32>):
    %s = nn.reduce sum %a {axes = array<i64: 0>} : tensor<3xf32> -> tensor<1xf32>
    %b = nn.broadcast %s : tensor<1xf32> -> tensor<2xf32>
    pipe.yield %b : tensor<2xf32>
  }
  return %y : tensor<2xf32>
}

// -----

// (C2) of stage: a value of another stage that nobody sent.
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = pipe.stage 0 forward(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    pipe.yield %a : tensor<2xf32>
  }
  // expected-error @below {{must be a function argument, a transfer to stage 1 or a result of another program of it}}
  %z = pipe.stage 1 forward(%y) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    pipe.yield %a : tensor<2xf32>
  }
  return %z : tensor<2xf32>
}

// -----

// (C2) of stage: a result that leaves from where it is not.
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{(C2) a result goes through a transfer from stage 2, not 0}}
  %y = pipe.stage 0 forward(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    pipe.yield %a : tensor<2xf32>
  }
  %t = pipe.transfer %y {from = 2 : i64, to = 1 : i64} : tensor<2xf32> -> tensor<2xf32>
  return %t : tensor<2xf32>
}

// -----

// (C2) of transfer: a stage sends nothing to itself.
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = pipe.stage 1 forward(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    pipe.yield %a : tensor<2xf32>
  }
  // expected-error @below {{(C2) goes from stage 1 to stage 1; it must connect two stages}}
  %t = pipe.transfer %y {from = 1 : i64, to = 1 : i64} : tensor<2xf32> -> tensor<2xf32>
  return %t : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'program' [forward, backward, weight_gradient, update]}}
  %y = pipe.stage 1 sideways(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    pipe.yield %a : tensor<2xf32>
  }
  return %y : tensor<2xf32>
}
