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

// -----

// A device would be started with blocks alone.
func.func @launch(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(C3) launch must be blocks, threads of a block, and bytes of shared memory}}
  %0 = nn.fused "f" (%x) {launch = array<i64: 4>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A library would read what the kernel does not have.
func.func @epilogue(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(C4) attention and epilogue must read some of the 1 operands and write results}}
  %0 = nn.fused "f" (%x) {epilogue = #nn.epilogue<bias, product = 0, bias = 1>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @attention(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(C4) attention and epilogue must read some of the 1 operands and write results}}
  %0 = nn.fused "f" (%x) {attention = #nn.attention<kind = forward, batch = 1, heads = 1, groups = 1, queries = 2, keys = 2, depth = 2, width = 2, query = <argument = 0, type = f32, strides = [0, 0, 2, 1]>, key = <argument = 0, type = f32, strides = [0, 0, 2, 1]>, value = <argument = 0, type = f32, strides = [0, 0, 2, 1]>, results = [#nn.attention_tensor<argument = 0, type = f32, strides = [0, 0, 2, 1]>], scale = 1.0 : f64>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @gradients(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(C1) an attention has one result forward; backward it has a gradient and three}}
  %0 = nn.fused "f" (%x) {attention = #nn.attention<kind = backward, batch = 1, heads = 1, groups = 1, queries = 2, keys = 2, depth = 2, width = 2, query = <argument = 0, type = f32, strides = [0, 0, 2, 1]>, key = <argument = 0, type = f32, strides = [0, 0, 2, 1]>, value = <argument = 0, type = f32, strides = [0, 0, 2, 1]>, results = [#nn.attention_tensor<argument = 1, type = f32, strides = [0, 0, 2, 1]>], scale = 1.0 : f64>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @groups(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(C2) sizes of an attention must not be negative, and its 2 groups must divide its 3 heads}}
  %0 = nn.fused "f" (%x) {attention = #nn.attention<kind = forward, batch = 1, heads = 3, groups = 2, queries = 2, keys = 2, depth = 2, width = 2, query = <argument = 0, type = f32, strides = [0, 0, 2, 1]>, key = <argument = 0, type = f32, strides = [0, 0, 2, 1]>, value = <argument = 0, type = f32, strides = [0, 0, 2, 1]>, results = [#nn.attention_tensor<argument = 1, type = f32, strides = [0, 0, 2, 1]>], scale = 1.0 : f64>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @strides(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(C1) a tensor of an attention has four strides and numbers of a known type, in an argument}}
  %0 = nn.exp %x {hpc.kernel_name = #nn.attention_tensor<argument = 0, type = f32, strides = [2, 1]>} : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
