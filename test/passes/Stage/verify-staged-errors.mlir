// RUN: hpc-opt %s --hpc-verify-staged --split-input-file -verify-diagnostics

// An op outside of every stage would run nowhere.
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{'nn.exp' stands outside of every stage}}
  %y = nn.exp %x : tensor<2x4xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{stage 1 stands at position 0; stages run in order}}
  %y = pipe.stage 1 "forward" (%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>):
    pipe.yield %a : tensor<2x4xf32>
  }
  return %y : tensor<2x4xf32>
}

// -----

// A transfer over two stages: the ranks between would have to forward it.
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = pipe.stage 0 "forward" (%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>):
    pipe.yield %a : tensor<2x4xf32>
  }
  // expected-error @below {{transfer from stage 0 to 2 must carry a result of stage 0 to its neighbour}}
  %t = pipe.transfer %y {from = 0 : i64, to = 2 : i64} : tensor<2x4xf32> -> tensor<2x4xf32>
  return %t : tensor<2x4xf32>
}
