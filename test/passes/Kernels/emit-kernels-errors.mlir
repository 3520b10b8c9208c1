// RUN: hpc-opt %s --hpc-emit-kernels -split-input-file -verify-diagnostics

// A library call has no generated code.
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.fused "m_0" (%x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    // expected-error @+1 {{nn.matmul in region 'm_0' has no code; add it to passes/Kernels/Elements/ScalarEmitter.cpp or ElementEmitter.cpp}}
    %1 = nn.matmul %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    nn.yield %1 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// -----

// One symbol means one kernel.
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = nn.fused "f_0" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = nn.exp %a : tensor<4xf32> -> tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  // expected-error @+1 {{two different regions are called 'f_0'}}
  %2 = nn.fused "f_0" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = nn.log %a : tensor<4xf32> -> tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Nor where one writes over its operand.
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = nn.fused "f_0" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = nn.exp %a : tensor<4xf32> -> tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  // expected-error @+1 {{two different regions are called 'f_0'}}
  %2 = nn.fused "f_0" (%y) {in_place = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = nn.exp %a : tensor<4xf32> -> tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Nor where one adds to a sum.
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = nn.fused "f_0" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = nn.exp %a : tensor<4xf32> -> tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  // expected-error @+1 {{two different regions are called 'f_0'}}
  %2 = nn.fused "f_0" (%y) {adds_over = "mb"} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = nn.exp %a : tensor<4xf32> -> tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// One loop nest has one root shape.
func.func @main(%x: tensor<4xf32>, %y: tensor<5xf32>) -> (tensor<4xf32>, tensor<5xf32>) {
  // expected-error @+1 {{results of region 'g_0' have no common root shape; split the region}}
  %0:2 = nn.fused "g_0" (%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> (tensor<4xf32>, tensor<5xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<5xf32>):
    %1 = nn.exp %a : tensor<4xf32> -> tensor<4xf32>
    %2 = nn.exp %b : tensor<5xf32> -> tensor<5xf32>
    nn.yield %1, %2 : tensor<4xf32>, tensor<5xf32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<5xf32>
}

// -----

// Kernels for a machine that nothing here makes code for would be x86-64's under another name.
// expected-error @+1 {{hpc.target = 'unheard-of' has no code generator for 'unheard-of'; use 'x86-64', 'ptx' or 'x86-64,ptx'}}
module attributes {hpc.target = "unheard-of"} {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.fused "f_0" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = nn.exp %a : tensor<4xf32> -> tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
}
