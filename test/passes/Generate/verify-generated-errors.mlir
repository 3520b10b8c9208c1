// RUN: hpc-opt %s --split-input-file --hpc-verify-generated -verify-diagnostics

// A state that no step writes would stay as it began.
module {
  // expected-error @below {{writes 1 of 2 states, and has 1 results in all}}
  func.func @main(%ids: tensor<2x1xi64> {nn.name = "ids"}, %position: tensor<i64> {nn.step_scalar = "position"}, %cache: tensor<2x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"}, %x: tensor<2x1x6xf32> {nn.state = "x", nn.initial = 0.0 : f64})
      -> (tensor<2x1x6xf32> {nn.writes = "x"}) {
    return %x : tensor<2x1x6xf32>
  }
}

// -----

// Without its place a step is any.
module {
  // expected-error @below {{takes 1 inputs and 0 scalars 'position', not one of each}}
  func.func @main(%x: tensor<2x1x6xf32> {nn.name = "x"}) -> tensor<2x1x6xf32> {
    return %x : tensor<2x1x6xf32>
  }
}

// -----

// The logits of all rows.
module {
  // expected-error @below {{result 0 is 'tensor<2x4x6xf32>', not the logits of one row}}
  func.func @main(%x: tensor<2x4x6xf32> {nn.name = "x"}, %position: tensor<i64> {nn.step_scalar = "position"}) -> tensor<2x4x6xf32> {
    return %x : tensor<2x4x6xf32>
  }
}

// -----

// The virtual mesh.
// expected-error @below {{has dist.mesh after generate}}
module attributes {dist.mesh = #dist.mesh<"cp=4:sequence, row=2:sequence">} {
  func.func @main(%x: tensor<2x1x6xf32> {nn.name = "x"}, %position: tensor<i64> {nn.step_scalar = "position"}) -> tensor<2x1x6xf32> {
    return %x : tensor<2x1x6xf32>
  }
}

// -----

// What is left of it.
module {
  func.func @main(%x: tensor<2x1x6xf32> {nn.name = "x"}, %position: tensor<i64> {nn.step_scalar = "position"}) -> tensor<2x1x6xf32> {
    // expected-error @below {{is of dist, which no serial program has}}
    %o = dist.offset {dim = #dist.sharding<"[8]">} : tensor<i64>
    return %x : tensor<2x1x6xf32>
  }
}
