// RUN: hpc-opt %s -split-input-file -verify-diagnostics

// A kind of reduction that there is not: read as another one, a program would compute something else.
func.func @unknown(%x: tensor<4x6xf32>) {
  // expected-error @below {{'mean' is no reduction; there are sum, max, min and prod}}
  // expected-error @below {{failed to parse NN_ReduceKindAttr}}
  %0 = nn.reduce mean %x {axes = array<i64: 1>} : tensor<4x6xf32> -> tensor<4x1xf32>
  return
}

// -----

// (C1) Axes that are not sorted dims of the operand.
func.func @axes(%x: tensor<4x6xf32>) {
  // expected-error @below {{(C1) axes array<i64: 1, 0> must be sorted dims of 'tensor<4x6xf32>'}}
  %0 = nn.reduce sum %x {axes = array<i64: 1, 0>} : tensor<4x6xf32> -> tensor<1x1xf32>
  return
}

// -----

// (C1) A reduced dim that is gone: ranks would count dims differently.
func.func @shape(%x: tensor<4x6xf32>) {
  // expected-error @below {{(C1) result 'tensor<4xf32>' must be the operand with size 1 at the axes}}
  %0 = nn.reduce sum %x {axes = array<i64: 1>} : tensor<4x6xf32> -> tensor<4xf32>
  return
}
