// RUN: hpc-opt %s -split-input-file --hpc-emit-kernels | FileCheck %s

// A backend whose library does this to a product knows it by the attribute alone: another number of an argument, or another kind, would be computed. Either order of
// the sum; a bias of any shape along the last dim; relu as a maximum; a product seen over another shape; one whose batch dims become rows.
// CHECK-LABEL: @epilogues
// CHECK: "add_0"(%{{.*}}, %{{.*}}) {epilogue = #nn.epilogue<bias, product = 0, bias = 1>, launch
// CHECK: "relu_0"(%{{.*}}, %{{.*}}) {epilogue = #nn.epilogue<bias_relu, product = 1, bias = 0>, launch
// CHECK: "max_0"(%{{.*}}, %{{.*}}) {epilogue = #nn.epilogue<bias_relu, product = 0, bias = 1>, launch
// CHECK: "gelu_0"(%{{.*}}, %{{.*}}) {epilogue = #nn.epilogue<bias_gelu_tanh, product = 0, bias = 1>, launch
module attributes {hpc.target = "x86-64,ptx"} {
func.func @epilogues(%x: tensor<2x4x8xf32>, %w: tensor<8x6xf32>, %bias: tensor<6xf32>, %row: tensor<1x6xf32>) -> (tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<8x6xf32>) {
  %p = nn.matmul %x, %w : tensor<2x4x8xf32>, tensor<8x6xf32> -> tensor<2x4x6xf32>
  %q = nn.reshape %p : tensor<2x4x6xf32> -> tensor<8x6xf32>
  %r0 = nn.fused "add_0" (%p, %bias) : (tensor<2x4x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32> {
  ^bb0(%a: tensor<2x4x6xf32>, %b: tensor<6xf32>):
    %1 = nn.add %b, %a : tensor<6xf32>, tensor<2x4x6xf32> -> tensor<2x4x6xf32>
    nn.yield %1 : tensor<2x4x6xf32>
  }
  %r1 = nn.fused "relu_0" (%row, %p) : (tensor<1x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32> {
  ^bb0(%a: tensor<1x6xf32>, %b: tensor<2x4x6xf32>):
    %v = nn.reshape %a : tensor<1x6xf32> -> tensor<6xf32>
    %1 = nn.add %b, %v : tensor<2x4x6xf32>, tensor<6xf32> -> tensor<2x4x6xf32>
    %2 = nn.relu %1 : tensor<2x4x6xf32> -> tensor<2x4x6xf32>
    nn.yield %2 : tensor<2x4x6xf32>
  }
  %r2 = nn.fused "max_0" (%p, %row) : (tensor<2x4x6xf32>, tensor<1x6xf32>) -> tensor<2x4x6xf32> {
  ^bb0(%a: tensor<2x4x6xf32>, %b: tensor<1x6xf32>):
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %1 = nn.add %a, %b : tensor<2x4x6xf32>, tensor<1x6xf32> -> tensor<2x4x6xf32>
    %2 = nn.max %zero, %1 : tensor<f32>, tensor<2x4x6xf32> -> tensor<2x4x6xf32>
    nn.yield %2 : tensor<2x4x6xf32>
  }
  %r3 = nn.fused "gelu_0" (%q, %bias) : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32> {
  ^bb0(%a: tensor<8x6xf32>, %b: tensor<6xf32>):
    %1 = nn.add %a, %b : tensor<8x6xf32>, tensor<6xf32> -> tensor<8x6xf32>
    %2 = nn.gelu %1 {tanh_approximation} : tensor<8x6xf32> -> tensor<8x6xf32>
    nn.yield %2 : tensor<8x6xf32>
  }
  return %r0, %r1, %r2, %r3 : tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<8x6xf32>
}
}

// -----

// The same for the host alone: its plan must not depend on what else it could be made for.
// CHECK-LABEL: @host
// CHECK-NOT: epilogue =
module attributes {hpc.target = "x86-64"} {
func.func @host(%x: tensor<8x8xf32>, %w: tensor<8x6xf32>, %bias: tensor<6xf32>) -> tensor<8x6xf32> {
  %p = nn.matmul %x, %w : tensor<8x8xf32>, tensor<8x6xf32> -> tensor<8x6xf32>
  %r0 = nn.fused "add_0" (%p, %bias) : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32> {
  ^bb0(%a: tensor<8x6xf32>, %b: tensor<6xf32>):
    %1 = nn.add %a, %b : tensor<8x6xf32>, tensor<6xf32> -> tensor<8x6xf32>
    nn.yield %1 : tensor<8x6xf32>
  }
  return %r0 : tensor<8x6xf32>
}
}

// -----

// What a library would not compute, or not from this product: each differs from an epilogue in one thing.
// CHECK-LABEL: @others
// CHECK-NOT: epilogue =
module attributes {hpc.target = "ptx"} {
func.func @others(%x: tensor<6x6xf32>, %w: tensor<6x6xf32>, %bias: tensor<6xf32>, %tall: tensor<6x1xf32>, %y: tensor<2x6x6xf32>, %v: tensor<2x6x6xf32>, %one: tensor<1xf32>) {
  %p = nn.matmul %x, %w : tensor<6x6xf32>, tensor<6x6xf32> -> tensor<6x6xf32>
  // a cast
  %cast = nn.fused "cast_0" (%p, %bias) : (tensor<6x6xf32>, tensor<6xf32>) -> tensor<6x6xbf16> {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<6xf32>):
    %1 = nn.add %a, %b : tensor<6x6xf32>, tensor<6xf32> -> tensor<6x6xf32>
    %2 = nn.cast %1 : tensor<6x6xf32> -> tensor<6x6xbf16>
    nn.yield %2 : tensor<6x6xbf16>
  }
  // one operand more
  %residual = nn.fused "residual_0" (%p, %bias, %x) : (tensor<6x6xf32>, tensor<6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<6xf32>, %c: tensor<6x6xf32>):
    %1 = nn.add %a, %b : tensor<6x6xf32>, tensor<6xf32> -> tensor<6x6xf32>
    %2 = nn.add %1, %c : tensor<6x6xf32>, tensor<6x6xf32> -> tensor<6x6xf32>
    nn.yield %2 : tensor<6x6xf32>
  }
  // two results
  %two:2 = nn.fused "two_0" (%p, %bias) : (tensor<6x6xf32>, tensor<6xf32>) -> (tensor<6x6xf32>, tensor<6x6xf32>) {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<6xf32>):
    %1 = nn.add %a, %b : tensor<6x6xf32>, tensor<6xf32> -> tensor<6x6xf32>
    %2 = nn.relu %1 : tensor<6x6xf32> -> tensor<6x6xf32>
    nn.yield %1, %2 : tensor<6x6xf32>, tensor<6x6xf32>
  }
  // a bias along another dim
  %column = nn.fused "column_0" (%p, %tall) : (tensor<6x6xf32>, tensor<6x1xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<6x1xf32>):
    %1 = nn.add %a, %b : tensor<6x6xf32>, tensor<6x1xf32> -> tensor<6x6xf32>
    nn.yield %1 : tensor<6x6xf32>
  }
  // one number for all
  %single = nn.fused "single_0" (%p, %one) : (tensor<6x6xf32>, tensor<1xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<1xf32>):
    %1 = nn.add %a, %b : tensor<6x6xf32>, tensor<1xf32> -> tensor<6x6xf32>
    nn.yield %1 : tensor<6x6xf32>
  }
  // the other GELU
  %erf = nn.fused "erf_0" (%p, %bias) : (tensor<6x6xf32>, tensor<6xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<6xf32>):
    %1 = nn.add %a, %b : tensor<6x6xf32>, tensor<6xf32> -> tensor<6x6xf32>
    %2 = nn.gelu %1 : tensor<6x6xf32> -> tensor<6x6xf32>
    nn.yield %2 : tensor<6x6xf32>
  }
  // no bias
  %relu = nn.fused "relu_0" (%p, %p) : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<6x6xf32>):
    %1 = nn.add %a, %b : tensor<6x6xf32>, tensor<6x6xf32> -> tensor<6x6xf32>
    %2 = nn.relu %1 : tensor<6x6xf32> -> tensor<6x6xf32>
    nn.yield %2 : tensor<6x6xf32>
  }
  // no relu
  %minimum = nn.fused "minimum_0" (%p, %bias) : (tensor<6x6xf32>, tensor<6xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<6xf32>):
    %limit = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
    %1 = nn.add %a, %b : tensor<6x6xf32>, tensor<6xf32> -> tensor<6x6xf32>
    %2 = nn.max %1, %limit : tensor<6x6xf32>, tensor<f32> -> tensor<6x6xf32>
    nn.yield %2 : tensor<6x6xf32>
  }
  // a product, not a sum
  %product = nn.fused "product_0" (%p, %bias) : (tensor<6x6xf32>, tensor<6xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<6xf32>):
    %1 = nn.mul %a, %b : tensor<6x6xf32>, tensor<6xf32> -> tensor<6x6xf32>
    nn.yield %1 : tensor<6x6xf32>
  }
  // its elements elsewhere
  %transposed = nn.fused "transposed_0" (%p, %bias) : (tensor<6x6xf32>, tensor<6xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<6xf32>):
    %t = nn.transpose %a {permutation = array<i64: 1, 0>} : tensor<6x6xf32> -> tensor<6x6xf32>
    %1 = nn.add %t, %b : tensor<6x6xf32>, tensor<6xf32> -> tensor<6x6xf32>
    nn.yield %1 : tensor<6x6xf32>
  }
  // of no product
  %input = nn.fused "input_0" (%x, %bias) : (tensor<6x6xf32>, tensor<6xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<6xf32>):
    %1 = nn.add %a, %b : tensor<6x6xf32>, tensor<6xf32> -> tensor<6x6xf32>
    nn.yield %1 : tensor<6x6xf32>
  }
  %q = nn.matmul %y, %v : tensor<2x6x6xf32>, tensor<2x6x6xf32> -> tensor<2x6x6xf32>
  // of a batch of them
  %batch = nn.fused "batch_0" (%q, %bias) : (tensor<2x6x6xf32>, tensor<6xf32>) -> tensor<2x6x6xf32> {
  ^bb0(%a: tensor<2x6x6xf32>, %b: tensor<6xf32>):
    %1 = nn.add %a, %b : tensor<2x6x6xf32>, tensor<6xf32> -> tensor<2x6x6xf32>
    nn.yield %1 : tensor<2x6x6xf32>
  }
  %s = nn.reshape %p : tensor<6x6xf32> -> tensor<36x1xf32>
  // of other columns than the product has
  %shape = nn.fused "shape_0" (%s, %one) : (tensor<36x1xf32>, tensor<1xf32>) -> tensor<36x1xf32> {
  ^bb0(%a: tensor<36x1xf32>, %b: tensor<1xf32>):
    %1 = nn.add %a, %b : tensor<36x1xf32>, tensor<1xf32> -> tensor<36x1xf32>
    nn.yield %1 : tensor<36x1xf32>
  }
  %tl = nn.matmul %y, %w {transpose_lhs} : tensor<2x6x6xf32>, tensor<6x6xf32> -> tensor<2x6x6xf32>
  // of a batch of them, whose rows are columns of what is read
  %turned = nn.fused "turned_0" (%tl, %bias) : (tensor<2x6x6xf32>, tensor<6xf32>) -> tensor<2x6x6xf32> {
  ^bb0(%a: tensor<2x6x6xf32>, %b: tensor<6xf32>):
    %1 = nn.add %a, %b : tensor<2x6x6xf32>, tensor<6xf32> -> tensor<2x6x6xf32>
    nn.yield %1 : tensor<2x6x6xf32>
  }
  // one operand more, though it is not read
  %more = nn.fused "more_0" (%p, %bias, %x) : (tensor<6x6xf32>, tensor<6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<6x6xf32>, %b: tensor<6xf32>, %c: tensor<6x6xf32>):
    %1 = nn.add %a, %b : tensor<6x6xf32>, tensor<6xf32> -> tensor<6x6xf32>
    nn.yield %1 : tensor<6x6xf32>
  }
  %row = nn.slice %x {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<6x6xf32> -> tensor<1x6xf32>
  %pr = nn.matmul %row, %w : tensor<1x6xf32>, tensor<6x6xf32> -> tensor<1x6xf32>
  // a row that is its own bias
  %self = nn.fused "self_0" (%pr, %bias) : (tensor<1x6xf32>, tensor<6xf32>) -> tensor<1x6xf32> {
  ^bb0(%a: tensor<1x6xf32>, %b: tensor<6xf32>):
    %1 = nn.add %a, %a : tensor<1x6xf32>, tensor<1x6xf32> -> tensor<1x6xf32>
    nn.yield %1 : tensor<1x6xf32>
  }
  return
}
}
