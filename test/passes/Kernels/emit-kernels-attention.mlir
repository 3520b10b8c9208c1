// RUN: hpc-opt %s -split-input-file --hpc-emit-kernels | FileCheck %s

// A backend with a library for attention knows it by this alone: a stride or an argument that is another would be read and written there. Positions outside of heads:
// the stride of a head is its channels. Results are numbered behind the operands.
// CHECK-LABEL: @forward
// CHECK: attention = #nn.attention<kind = forward, batch = 3, heads = 2, groups = 2, queries = 4, keys = 4, depth = 8, width = 8,
// CHECK-SAME: query = <argument = 0, type = bf16, strides = [64, 8, 16, 1]>, key = <argument = 1, type = bf16, strides = [64, 8, 16, 1]>, value = <argument = 1, type = bf16, strides = [64, 8, 16, 1]>,
// CHECK-SAME: results = [#nn.attention_tensor<argument = 2, type = bf16, strides = [64, 32, 8, 1]>], scale = 5.000000e-01 : f64, causal_offset = 0>
// CHECK-SAME: launch = array<i64: 6, 128, {{[0-9]+}}>
module attributes {hpc.target = "ptx"} {
func.func @forward(%x: tensor<3x4x2x8xbf16>, %y: tensor<3x4x2x8xbf16>) -> tensor<3x2x4x8xbf16> {
  %0 = nn.fused "attention_0" (%x, %y) : (tensor<3x4x2x8xbf16>, tensor<3x4x2x8xbf16>) -> tensor<3x2x4x8xbf16> {
  ^bb0(%a: tensor<3x4x2x8xbf16>, %b: tensor<3x4x2x8xbf16>):
    %q = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<3x4x2x8xbf16> -> tensor<3x2x4x8xbf16>
    %k = nn.transpose %b {permutation = array<i64: 0, 2, 1, 3>} : tensor<3x4x2x8xbf16> -> tensor<3x2x4x8xbf16>
    %r = nn.attention %q, %k, %k {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<3x2x4x8xbf16>, tensor<3x2x4x8xbf16>, tensor<3x2x4x8xbf16> -> tensor<3x2x4x8xbf16>
    nn.yield %r : tensor<3x2x4x8xbf16>
  }
  return %0 : tensor<3x2x4x8xbf16>
}
}

// -----

// The gradient has an operand more and three results.
// CHECK-LABEL: @backward
// CHECK: attention = #nn.attention<kind = backward, {{.*}}key = <argument = 0, type = f32, strides = [0, 16, 4, 1]>, {{.*}}gradient = <argument = 1, type = f32, strides = [0, 16, 4, 1]>,
// CHECK-SAME: results = [#nn.attention_tensor<argument = 2, {{[^>]*}}>, #nn.attention_tensor<argument = 3, {{[^>]*}}>, #nn.attention_tensor<argument = 4, {{[^>]*}}>], {{.*}}guarded = true>
module attributes {hpc.target = "ptx"} {
func.func @backward(%x: tensor<1x2x4x4xf32>, %g: tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %0:3 = nn.fused "attention_grad_0" (%x, %g) : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  ^bb0(%a: tensor<1x2x4x4xf32>, %b: tensor<1x2x4x4xf32>):
    %r:3 = nn.attention_grad %a, %a, %a, %b {scale = 0.5 : f64, guarded} : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
    nn.yield %r#0, %r#1, %r#2 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
  }
  return %0#0, %0#1, %0#2 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}
}

// -----

// A key that is read from its end: no library walks backwards.
// CHECK-LABEL: @reversed
// CHECK-NOT: #nn.attention<
module attributes {hpc.target = "ptx"} {
func.func @reversed(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %0 = nn.fused "attention_0" (%x) : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  ^bb0(%a: tensor<1x2x4x4xf32>):
    %k = nn.slice %a {starts = array<i64: 0, 0, 3, 0>, steps = array<i64: 1, 1, -1, 1>} : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    %r = nn.attention %a, %k, %a {scale = 0.5 : f64} : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    nn.yield %r : tensor<1x2x4x4xf32>
  }
  return %0 : tensor<1x2x4x4xf32>
}
}

// -----

// A bias that the region makes is in no buffer: the kernel alone can have it.
// CHECK-LABEL: @made_bias
// CHECK-NOT: #nn.attention<
module attributes {hpc.target = "ptx"} {
func.func @made_bias(%x: tensor<1x2x4x4xf32>, %m: tensor<1x1x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %0 = nn.fused "attention_0" (%x, %m) : (tensor<1x2x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x2x4x4xf32> {
  ^bb0(%a: tensor<1x2x4x4xf32>, %b: tensor<1x1x4x4xf32>):
    %n = nn.neg %b : tensor<1x1x4x4xf32> -> tensor<1x1x4x4xf32>
    %r = nn.attention %a, %a, %a bias %n : tensor<1x1x4x4xf32> {scale = 0.5 : f64} : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    nn.yield %r : tensor<1x2x4x4xf32>
  }
  return %0 : tensor<1x2x4x4xf32>
}
}

// -----

// Nor has any library keys in two buffers.
// CHECK-LABEL: @parts
// CHECK-NOT: #nn.attention<
module attributes {hpc.target = "ptx"} {
func.func @parts(%x: tensor<1x2x1x4xf32>, %y: tensor<1x2x3x4xf32>) -> tensor<1x2x1x4xf32> {
  %0 = nn.fused "attention_0" (%x, %y) : (tensor<1x2x1x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x1x4xf32> {
  ^bb0(%a: tensor<1x2x1x4xf32>, %b: tensor<1x2x3x4xf32>):
    %k = nn.concat %b, %a {axis = 2 : i64} : tensor<1x2x3x4xf32>, tensor<1x2x1x4xf32> -> tensor<1x2x4x4xf32>
    %r = nn.attention %a, %k, %k {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x1x4xf32>
    nn.yield %r : tensor<1x2x1x4xf32>
  }
  return %0 : tensor<1x2x1x4xf32>
}
}

// -----

// Nor keys of another type than the queries'.
// CHECK-LABEL: @cast
// CHECK-NOT: #nn.attention<
module attributes {hpc.target = "ptx"} {
func.func @cast(%x: tensor<1x2x1x4xbf16>, %y: tensor<1x2x3x4xf32>) -> tensor<1x2x1x4xbf16> {
  %0 = nn.fused "attention_0" (%x, %y) : (tensor<1x2x1x4xbf16>, tensor<1x2x3x4xf32>) -> tensor<1x2x1x4xbf16> {
  ^bb0(%a: tensor<1x2x1x4xbf16>, %b: tensor<1x2x3x4xf32>):
    %k = nn.cast %b : tensor<1x2x3x4xf32> -> tensor<1x2x3x4xbf16>
    %r = nn.attention %a, %k, %k {scale = 0.5 : f64} : tensor<1x2x1x4xbf16>, tensor<1x2x3x4xbf16>, tensor<1x2x3x4xbf16> -> tensor<1x2x1x4xbf16>
    nn.yield %r : tensor<1x2x1x4xbf16>
  }
  return %0 : tensor<1x2x1x4xbf16>
}
}
