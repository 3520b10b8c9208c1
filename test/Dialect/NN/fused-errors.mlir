// RUN: hpc-opt %s -split-input-file -verify-diagnostics

// A region that were called with other types than it computes on would read past its buffers.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(C1) block arguments must have the operands' types}}
  %0 = nn.fused "f_0" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<5xf32>):
    %1 = nn.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// Lower reads one entry per result.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(C2) in_place has 2 entries for 1 results}}
  %0 = nn.fused "f_0" (%x) {in_place = array<i64: 0, -1>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// There is no such buffer.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(C2) in_place names operand 1 of 1}}
  %0 = nn.fused "f_0" (%x) {in_place = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// The result would not fit into the operand's buffer.
func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(C2) result 0 of type 'tensor<4xf32>' cannot be written over operand 0 of type 'tensor<2xf32>'}}
  %0 = nn.fused "f_0" (%x) {in_place = array<i64: 0>} : (tensor<2xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<2xf32>):
    %1 = nn.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// One buffer holds one result.
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error @+1 {{(C2) two results are written over operand 0}}
  %0:2 = nn.fused "f_0" (%x) {in_place = array<i64: 0, 0>} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>):
    %1 = nn.exp %a : tensor<4xf32> -> tensor<4xf32>
    nn.yield %a, %1 : tensor<4xf32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}
