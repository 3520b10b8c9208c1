// RUN: hpc-opt %s -split-input-file --hpc-fuse-regions | FileCheck %s

// Each case differs in one condition from code that joins the region of the attention; this condition alone refuses it.

// The concatenation of keys stays outside if its result is also the query, if it has nine parts, if it has no elements, or if a view of a part has no strides.
// CHECK-LABEL: @whole
// CHECK: %[[A:.*]] = nn.fused "concat_1x2x2x4_0"(%arg0)
// CHECK: nn.fused "attention_1x2x2x4_{{.*}}"(%[[A]], %arg5)
// CHECK: %[[B:.*]] = nn.fused "concat_1x2x9x4_0"(%arg0)
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %[[B]])
// CHECK: %[[C:.*]] = nn.fused "concat_1x2x0x4_0"(%arg1)
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %[[C]])
// CHECK: %[[D:.*]] = nn.fused "transpose_1x3x2x6x4_{{.*}}"(%arg3, %arg4)
// CHECK: nn.fused "attention_1x6x1x4_{{.*}}"(%arg2, %[[D]])
func.func @whole(%one: tensor<1x2x1x4xf32>, %none: tensor<1x2x0x4xf32>, %six: tensor<1x6x1x4xf32>, %past: tensor<1x5x2x3x4xf32>, %new: tensor<1x1x2x3x4xf32>, %v: tensor<1x2x2x4xf32>)
    -> (tensor<1x2x2x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x6x1x4xf32>) {
  %a = nn.concat %one, %one {axis = 2 : i64} : tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32> -> tensor<1x2x2x4xf32>
  %0 = nn.attention %a, %a, %v {scale = 0.5 : f64} : tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32> -> tensor<1x2x2x4xf32>
  %b = nn.concat %one, %one, %one, %one, %one, %one, %one, %one, %one {axis = 2 : i64} : tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32> -> tensor<1x2x9x4xf32>
  %1 = nn.attention %one, %b, %b {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x9x4xf32>, tensor<1x2x9x4xf32> -> tensor<1x2x1x4xf32>
  %c = nn.concat %none, %none {axis = 2 : i64} : tensor<1x2x0x4xf32>, tensor<1x2x0x4xf32> -> tensor<1x2x0x4xf32>
  %2 = nn.attention %one, %c, %c {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x0x4xf32>, tensor<1x2x0x4xf32> -> tensor<1x2x1x4xf32>
  %d0 = nn.concat %past, %new {axis = 1 : i64} : tensor<1x5x2x3x4xf32>, tensor<1x1x2x3x4xf32> -> tensor<1x6x2x3x4xf32>
  %d1 = nn.transpose %d0 {permutation = array<i64: 0, 3, 2, 1, 4>} : tensor<1x6x2x3x4xf32> -> tensor<1x3x2x6x4xf32>
  %d = nn.reshape %d1 : tensor<1x3x2x6x4xf32> -> tensor<1x6x6x4xf32>
  %3 = nn.attention %six, %d, %d {scale = 0.5 : f64} : tensor<1x6x1x4xf32>, tensor<1x6x6x4xf32>, tensor<1x6x6x4xf32> -> tensor<1x6x1x4xf32>
  return %0, %1, %2, %3 : tensor<1x2x2x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x6x1x4xf32>
}

// -----

// It stays outside, too, if an op after it drops, reverses or negates keys, merges them with channels, or if its result is returned. The last case joins: the dim of the keys is found
// after a reshape although another dim has the same size.
// CHECK-LABEL: @behind
// CHECK: %[[A:.*]] = nn.fused "concat_1x2x6x4_0"(%arg1, %arg0)
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %[[A]])
// CHECK: %[[B:.*]] = nn.fused "concat_1x2x6x4_0"(%arg1, %arg0)
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %[[B]])
// CHECK: %[[C:.*]] = nn.fused "neg_1x2x6x4_0"(%arg1, %arg0)
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %[[C]])
// CHECK: %[[D:.*]] = nn.fused "concat_1x2x6x4_0"(%arg1, %arg0)
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %[[D]])
// CHECK: %[[G:.*]] = nn.fused "concat_2x1x6x4_0"(%arg2, %arg3)
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %[[G]])
// CHECK: nn.fused "attention_1x6x1x4_{{.*}}"(%arg4, %arg5, %arg6)
// CHECK: nn.concat
func.func @behind(%q: tensor<1x2x1x4xf32>, %past: tensor<1x2x5x4xf32>, %p: tensor<2x1x5x4xf32>, %n: tensor<2x1x1x4xf32>, %six: tensor<1x6x1x4xf32>, %five: tensor<1x6x5x4xf32>, %last: tensor<1x6x1x4xf32>)
    -> (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<2x1x6x4xf32>, tensor<1x6x1x4xf32>) {
  %a0 = nn.concat %past, %q {axis = 2 : i64} : tensor<1x2x5x4xf32>, tensor<1x2x1x4xf32> -> tensor<1x2x6x4xf32>
  %a = nn.slice %a0 {starts = array<i64: 0, 0, 1, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<1x2x6x4xf32> -> tensor<1x2x5x4xf32>
  %0 = nn.attention %q, %a, %a {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x1x4xf32>
  %b0 = nn.concat %past, %q {axis = 2 : i64} : tensor<1x2x5x4xf32>, tensor<1x2x1x4xf32> -> tensor<1x2x6x4xf32>
  %b = nn.slice %b0 {starts = array<i64: 0, 0, 5, 0>, steps = array<i64: 1, 1, -1, 1>} : tensor<1x2x6x4xf32> -> tensor<1x2x6x4xf32>
  %1 = nn.attention %q, %b, %b {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  %c0 = nn.concat %past, %q {axis = 2 : i64} : tensor<1x2x5x4xf32>, tensor<1x2x1x4xf32> -> tensor<1x2x6x4xf32>
  %c = nn.neg %c0 : tensor<1x2x6x4xf32> -> tensor<1x2x6x4xf32>
  %2 = nn.attention %q, %c, %c {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  %d0 = nn.concat %past, %q {axis = 2 : i64} : tensor<1x2x5x4xf32>, tensor<1x2x1x4xf32> -> tensor<1x2x6x4xf32>
  %d1 = nn.reshape %d0 : tensor<1x2x6x4xf32> -> tensor<1x2x24xf32>
  %d = nn.reshape %d1 : tensor<1x2x24xf32> -> tensor<1x2x6x4xf32>
  %3 = nn.attention %q, %d, %d {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  %g0 = nn.concat %p, %n {axis = 2 : i64} : tensor<2x1x5x4xf32>, tensor<2x1x1x4xf32> -> tensor<2x1x6x4xf32>
  %g = nn.transpose %g0 {permutation = array<i64: 1, 0, 2, 3>} : tensor<2x1x6x4xf32> -> tensor<1x2x6x4xf32>
  %4 = nn.attention %q, %g, %g {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  %h0 = nn.concat %five, %last {axis = 2 : i64} : tensor<1x6x5x4xf32>, tensor<1x6x1x4xf32> -> tensor<1x6x6x4xf32>
  %h1 = nn.reshape %h0 : tensor<1x6x6x4xf32> -> tensor<6x6x4xf32>
  %h = nn.reshape %h1 : tensor<6x6x4xf32> -> tensor<1x6x6x4xf32>
  %5 = nn.attention %six, %h, %h {scale = 0.5 : f64} : tensor<1x6x1x4xf32>, tensor<1x6x6x4xf32>, tensor<1x6x6x4xf32> -> tensor<1x6x1x4xf32>
  return %0, %1, %2, %3, %4, %g0, %5 : tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<2x1x6x4xf32>, tensor<1x6x1x4xf32>
}

// -----

// Few queries: one to eight, counted over all heads that share keys. Nine queries, a gradient and zero queries leave the concatenation outside.
// CHECK-LABEL: @many
// CHECK: %[[A:.*]] = nn.fused "concat_1x1x6x4_0"(%arg1)
// CHECK: nn.fused "attention_1x3x3x4_0"(%arg0, %[[A]])
// CHECK: %[[B:.*]] = nn.fused "concat_1x1x6x4_0"(%arg1)
// CHECK: nn.fused "attention_grad_1x1x2x4_0"(%arg2, %[[B]])
// CHECK: %[[C:.*]] = nn.fused "concat_1x1x6x4_0"(%arg1)
// CHECK: nn.fused "attention_1x1x0x4_0"(%arg3, %[[C]])
func.func @many(%q: tensor<1x3x3x4xf32>, %half: tensor<1x1x3x4xf32>, %two: tensor<1x1x2x4xf32>, %none: tensor<1x1x0x4xf32>) -> (tensor<1x1x0x4xf32>, tensor<1x3x3x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x6x4xf32>, tensor<1x1x6x4xf32>) {
  %a = nn.concat %half, %half {axis = 2 : i64} : tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32> -> tensor<1x1x6x4xf32>
  %0 = nn.attention %q, %a, %a {scale = 0.5 : f64} : tensor<1x3x3x4xf32>, tensor<1x1x6x4xf32>, tensor<1x1x6x4xf32> -> tensor<1x3x3x4xf32>
  %b = nn.concat %half, %half {axis = 2 : i64} : tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32> -> tensor<1x1x6x4xf32>
  %dq, %dk, %dv = nn.attention_grad %two, %b, %b, %two {scale = 0.5 : f64} : tensor<1x1x2x4xf32>, tensor<1x1x6x4xf32>, tensor<1x1x6x4xf32>, tensor<1x1x2x4xf32>
      -> tensor<1x1x2x4xf32>, tensor<1x1x6x4xf32>, tensor<1x1x6x4xf32>
  %c = nn.concat %half, %half {axis = 2 : i64} : tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32> -> tensor<1x1x6x4xf32>
  %1 = nn.attention %none, %c, %c {scale = 0.5 : f64} : tensor<1x1x0x4xf32>, tensor<1x1x6x4xf32>, tensor<1x1x6x4xf32> -> tensor<1x1x0x4xf32>
  return %1, %0, %dq, %dk, %dv : tensor<1x1x0x4xf32>, tensor<1x3x3x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x6x4xf32>, tensor<1x1x6x4xf32>
}

// -----

// The region reads keys through views of another region's result and through casts of a buffer. It does not read through a cast from integers, a cast whose result is returned, or a view
// without strides.
// CHECK-LABEL: @keys
// CHECK: %[[A:.*]] = nn.fused "add_1x6x8_0"
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %[[A]])
// CHECK: nn.transpose
// CHECK: %[[B:.*]] = nn.fused "cast_1x2x6x4_{{.*}}"(%arg3)
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %[[B]])
// CHECK: %[[C:.*]] = nn.fused "cast_1x2x6x4_{{.*}}"(%arg4)
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %[[C]])
// CHECK: %[[D:.*]] = nn.fused "reshape_1x2x6x4_0"(%arg5)
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %[[D]])
// CHECK: nn.fused "attention_1x2x1x4_{{.*}}"(%arg0, %arg4)
func.func @keys(%q: tensor<1x2x1x4xf32>, %x: tensor<1x6x8xf32>, %bias: tensor<8xf32>, %i: tensor<1x2x6x4xi32>, %h: tensor<1x2x6x4xbf16>, %z: tensor<2x3x2x4xf32>)
    -> (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>) {
  %a0 = nn.add %x, %bias : tensor<1x6x8xf32>, tensor<8xf32> -> tensor<1x6x8xf32>
  %a1 = nn.reshape %a0 : tensor<1x6x8xf32> -> tensor<1x6x2x4xf32>
  %a = nn.transpose %a1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x6x2x4xf32> -> tensor<1x2x6x4xf32>
  %0 = nn.attention %q, %a, %a {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  %b = nn.cast %i : tensor<1x2x6x4xi32> -> tensor<1x2x6x4xf32>
  %1 = nn.attention %q, %b, %b {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  %c = nn.cast %h : tensor<1x2x6x4xbf16> -> tensor<1x2x6x4xf32>
  %2 = nn.attention %q, %c, %c {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  %d0 = nn.transpose %z {permutation = array<i64: 1, 0, 2, 3>} : tensor<2x3x2x4xf32> -> tensor<3x2x2x4xf32>
  %d = nn.reshape %d0 : tensor<3x2x2x4xf32> -> tensor<1x2x6x4xf32>
  %3 = nn.attention %q, %d, %d {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  %e = nn.cast %h : tensor<1x2x6x4xbf16> -> tensor<1x2x6x4xf32>
  %4 = nn.attention %q, %e, %e {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  return %0, %1, %2, %c, %3, %4 : tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>
}

// -----

// The transpose stays outside if the result has two readers, and if no strides describe the view: dims that are split and swapped, channels that are regrouped.
// CHECK-LABEL: @results
// CHECK: %[[A:.*]] = nn.fused "attention_1x2x6x4_{{.*}} -> tensor<1x2x6x4xf32>
// CHECK: nn.fused "transpose_1x6x2x4_{{.*}}"(%[[A]])
// CHECK: nn.fused "transpose_1x2x4x6_{{.*}}"(%[[A]])
// CHECK: nn.fused "attention_1x2x6x4_{{.*}} -> tensor<1x2x2x3x4xf32>
// CHECK: nn.fused "transpose_1x2x3x2x4_
// CHECK: nn.fused "attention_1x2x6x4_{{.*}} -> tensor<1x2x6x4xf32>
// CHECK: nn.fused "transpose_1x2x6x4_
func.func @results(%q: tensor<1x2x6x4xf32>) -> (tensor<1x2x4x6xf32>, tensor<1x6x2x4xf32>, tensor<1x2x3x2x4xf32>, tensor<1x2x6x4xf32>) {
  %0 = nn.attention %q, %q, %q {scale = 0.5 : f64} : tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x6x4xf32>
  %1 = nn.transpose %0 {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x2x6x4xf32> -> tensor<1x6x2x4xf32>
  %8 = nn.transpose %0 {permutation = array<i64: 0, 1, 3, 2>} : tensor<1x2x6x4xf32> -> tensor<1x2x4x6xf32>
  %2 = nn.attention %q, %q, %q {scale = 0.25 : f64} : tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x6x4xf32>
  %3 = nn.reshape %2 : tensor<1x2x6x4xf32> -> tensor<1x2x2x3x4xf32>
  %4 = nn.transpose %3 {permutation = array<i64: 0, 1, 3, 2, 4>} : tensor<1x2x2x3x4xf32> -> tensor<1x2x3x2x4xf32>
  %5 = nn.attention %q, %q, %q {scale = 0.125 : f64} : tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x6x4xf32>
  %6 = nn.reshape %5 : tensor<1x2x6x4xf32> -> tensor<1x2x4x6xf32>
  %7 = nn.transpose %6 {permutation = array<i64: 0, 1, 3, 2>} : tensor<1x2x4x6xf32> -> tensor<1x2x6x4xf32>
  return %8, %1, %4, %7 : tensor<1x2x4x6xf32>, tensor<1x6x2x4xf32>, tensor<1x2x3x2x4xf32>, tensor<1x2x6x4xf32>
}

// -----

// These producers of a bias stay outside: an op on less than the scores of a head, a concatenation, a chain of more than 24 ops, a constant that is no splat.
// CHECK-LABEL: @bias
// CHECK: %[[A:.*]] = nn.fused "neg_2x1x1x6_0"(%arg1)
// CHECK: nn.fused "attention_2x2x6x4_{{.*}}"(%arg0, %[[A]])
// CHECK: nn.select
// CHECK: %[[B:.*]] = nn.fused "concat_1x1x6x6_0"(%arg2)
// CHECK: nn.fused "attention_2x2x6x4_{{.*}}"(%arg0, %[[B]])
// CHECK: nn.fused "attention_2x2x6x4_{{.*}}"(%arg0, %arg3)
// CHECK-COUNT-24: nn.{{(neg|abs)}}
// CHECK: %[[C:.*]] = nn.fused "neg_1x2x6x6_0"(%arg3)
// CHECK: nn.fused "attention_2x2x6x4_{{.*}}"(%arg0, %[[C]])
// CHECK: %[[T:.*]] = nn.fused "constant_1x1x6x6_0"()
// CHECK: nn.fused "attention_2x2x6x4_{{.*}}"(%arg0, %[[T]])
func.func @bias(%q: tensor<2x2x6x4xf32>, %padding: tensor<2x1x1x6xf32>, %half: tensor<1x1x6x3xf32>, %scores: tensor<1x2x6x6xf32>)
    -> (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) {
  %rows = nn.iota {dim = 2 : i64} : tensor<1x1x6x1xi64>
  %columns = nn.iota {dim = 3 : i64, start = -2 : i64} : tensor<1x1x1x6xi64>
  %visible = nn.compare ge %rows, %columns : tensor<1x1x6x1xi64>, tensor<1x1x1x6xi64> -> tensor<1x1x6x6xi1>
  %low = nn.constant dense<-1.0e9> : tensor<f32> : tensor<f32>
  %n = nn.neg %padding : tensor<2x1x1x6xf32> -> tensor<2x1x1x6xf32>
  %a = nn.select %visible, %n, %low : tensor<1x1x6x6xi1>, tensor<2x1x1x6xf32>, tensor<f32> -> tensor<2x1x6x6xf32>
  %0 = nn.attention %q, %q, %q bias %a : tensor<2x1x6x6xf32> {scale = 0.5 : f64} : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  %b = nn.concat %half, %half {axis = 3 : i64} : tensor<1x1x6x3xf32>, tensor<1x1x6x3xf32> -> tensor<1x1x6x6xf32>
  %1 = nn.attention %q, %q, %q bias %b : tensor<1x1x6x6xf32> {scale = 0.5 : f64} : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  %c0 = nn.neg %scores : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c1 = nn.abs %c0 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c2 = nn.neg %c1 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c3 = nn.abs %c2 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c4 = nn.neg %c3 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c5 = nn.abs %c4 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c6 = nn.neg %c5 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c7 = nn.abs %c6 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c8 = nn.neg %c7 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c9 = nn.abs %c8 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c10 = nn.neg %c9 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c11 = nn.abs %c10 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c12 = nn.neg %c11 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c13 = nn.abs %c12 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c14 = nn.neg %c13 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c15 = nn.abs %c14 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c16 = nn.neg %c15 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c17 = nn.abs %c16 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c18 = nn.neg %c17 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c19 = nn.abs %c18 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c20 = nn.neg %c19 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c21 = nn.abs %c20 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c22 = nn.neg %c21 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %c23 = nn.abs %c22 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %2 = nn.attention %q, %q, %q bias %c23 : tensor<1x2x6x6xf32> {scale = 0.5 : f64} : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  %d0 = nn.neg %scores : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d1 = nn.abs %d0 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d2 = nn.neg %d1 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d3 = nn.abs %d2 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d4 = nn.neg %d3 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d5 = nn.abs %d4 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d6 = nn.neg %d5 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d7 = nn.abs %d6 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d8 = nn.neg %d7 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d9 = nn.abs %d8 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d10 = nn.neg %d9 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d11 = nn.abs %d10 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d12 = nn.neg %d11 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d13 = nn.abs %d12 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d14 = nn.neg %d13 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d15 = nn.abs %d14 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d16 = nn.neg %d15 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d17 = nn.abs %d16 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d18 = nn.neg %d17 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d19 = nn.abs %d18 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d20 = nn.neg %d19 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d21 = nn.abs %d20 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d22 = nn.neg %d21 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d23 = nn.abs %d22 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %d24 = nn.neg %d23 : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %3 = nn.attention %q, %q, %q bias %d24 : tensor<1x2x6x6xf32> {scale = 0.5 : f64} : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  %t = nn.constant dense<[[[[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]]]> : tensor<1x1x6x6xf32> : tensor<1x1x6x6xf32>
  %4 = nn.attention %q, %q, %q bias %t : tensor<1x1x6x6xf32> {scale = 0.5 : f64} : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  return %0, %1, %2, %3, %4 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>
}

// -----

// Step and seed of a dropout stay outside if an op computes them from others or if they are parameters.
// CHECK-LABEL: @numbers
// CHECK: %[[S:.*]] = nn.parameter "seed"
// CHECK: %[[A:.*]] = nn.fused "add_scalar_0"(%arg1)
// CHECK: nn.fused "attention_1x2x6x4_0"(%arg0, %[[A]], %[[S]])
func.func @numbers(%q: tensor<1x2x6x4xf32>, %step: tensor<f64>) -> tensor<1x2x6x4xf32> {
  %seed = nn.parameter "seed" {value = dense<1.0> : tensor<f64>} : tensor<f64>
  %next = nn.add %step, %step : tensor<f64>, tensor<f64> -> tensor<f64>
  %1 = nn.attention %q, %q, %q dropout %next, %seed : tensor<f64>, tensor<f64> {scale = 0.5 : f64, site = 2 : i64, rate = 0.5 : f64} : tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x6x4xf32>
  return %1 : tensor<1x2x6x4xf32>
}
