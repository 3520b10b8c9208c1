// RUN: hpc-opt %s --hpc-write-in-place | FileCheck %s

// A step of momentum: the state is read and written at one element; so is the weight, which a matmul reads before.
// CHECK-LABEL: @momentum
// CHECK: nn.fused "momentum_0_over1_over0"(%{{.*}}, %{{.*}}, %{{.*}}) {in_place = array<i64: 1, 0>}
func.func @momentum(%x: tensor<4x4xf32>, %m: tensor<4x4xf32> {nn.state = "m/w", nn.initial = 0.0 : f64})
    -> (tensor<4x4xf32>, tensor<4x4xf32> {nn.writes = "m/w"}, tensor<4x4xf32> {nn.writes = "w"}) {
  %w = nn.parameter "w" {value = dense<1.0> : tensor<4x4xf32>} : tensor<4x4xf32>
  %y = nn.matmul %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %r:2 = nn.fused "momentum_0" (%w, %m, %y) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>):
    %0 = nn.add %b, %c : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %1 = nn.sub %a, %0 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    nn.yield %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
  }
  return %y, %r#0, %r#1 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Whoever reads the old value afterwards would see the new one.
// CHECK-LABEL: @readLater
// CHECK: nn.fused "sub_0"
// CHECK-NOT: in_place
func.func @readLater(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32> {nn.writes = "w"}) {
  %w = nn.parameter "w" {value = dense<1.0> : tensor<4x4xf32>} : tensor<4x4xf32>
  %r = nn.fused "sub_0" (%w, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
    %0 = nn.sub %a, %b : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    nn.yield %0 : tensor<4x4xf32>
  }
  %v = nn.reshape %w : tensor<4x4xf32> -> tensor<16xf32>
  %s = nn.reshape %v : tensor<16xf32> -> tensor<4x4xf32>
  %y = nn.matmul %x, %s : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %y, %r : tensor<4x4xf32>, tensor<4x4xf32>
}

// A row sum reads elements that are written already; and what is returned as it is read must stay.
// CHECK-LABEL: @otherElements
// CHECK: nn.fused "sum_0"
// CHECK: nn.fused "sub_1"
// CHECK-NOT: in_place
func.func @otherElements(%x: tensor<4x4xf32>, %m: tensor<4x4xf32> {nn.state = "m", nn.initial = 0.0 : f64}, %n: tensor<4x4xf32> {nn.state = "n", nn.initial = 0.0 : f64})
    -> (tensor<4x4xf32> {nn.writes = "m"}, tensor<4x4xf32> {nn.writes = "n"}, tensor<4x4xf32>) {
  %r = nn.fused "sum_0" (%m) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %0 = nn.reduce sum %a {axes = array<i64: 1>} : tensor<4x4xf32> -> tensor<4x1xf32>
    %1 = nn.sub %a, %0 : tensor<4x4xf32>, tensor<4x1xf32> -> tensor<4x4xf32>
    nn.yield %1 : tensor<4x4xf32>
  }
  %s = nn.fused "sub_1" (%n, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
    %0 = nn.sub %a, %b : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    nn.yield %0 : tensor<4x4xf32>
  }
  return %r, %s, %n : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Logits become their gradient where they are: two of them at once would be the largest buffers of a step. What is small, or read afterwards as the second one is, stays.
// CHECK-LABEL: @temporaries
// CHECK: nn.fused "exp_0_over0"(%{{.*}}) {in_place = array<i64: 0>}
// CHECK: nn.fused "small_0"
// CHECK: nn.fused "exp_1"
// CHECK-NOT: in_place
func.func @temporaries(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>) -> (tensor<4x4xf32>, tensor<4x16xf32>) {
  %l = nn.matmul %x, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %d = nn.fused "exp_0" (%l) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %0 = nn.exp %a : tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0 : tensor<4x16xf32>
  }
  %y = nn.matmul %d, %u {transpose_rhs} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  %s = nn.fused "small_0" (%y) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %0 = nn.exp %a : tensor<4x4xf32> -> tensor<4x4xf32>
    nn.yield %0 : tensor<4x4xf32>
  }
  %z = nn.matmul %s, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %k = nn.matmul %z, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %e = nn.fused "exp_1" (%k) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %0 = nn.exp %a : tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0 : tensor<4x16xf32>
  }
  %w = nn.matmul %k, %e {transpose_rhs} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  %v = nn.matmul %w, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  return %w, %v : tensor<4x4xf32>, tensor<4x16xf32>
}

// A product that a bias and an activation finish, however small: a device may do both at once, where they are one place. One that is read again afterwards stays.
// CHECK-LABEL: @epilogues
// CHECK: nn.fused "gelu_0_over0"(%{{.*}}, %{{.*}}) {in_place = array<i64: 0>}
// CHECK: nn.fused "add_0"
// CHECK-NOT: in_place
func.func @epilogues(%x: tensor<4x4xf32>, %u: tensor<4x64xf32>, %b: tensor<4xf32>) -> (tensor<4x64xf32>, tensor<4x4xf32>) {
  %p = nn.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %g = nn.fused "gelu_0" (%p, %b) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>, %c: tensor<4xf32>):
    %0 = nn.add %a, %c : tensor<4x4xf32>, tensor<4xf32> -> tensor<4x4xf32>
    %1 = nn.gelu %0 {tanh_approximation} : tensor<4x4xf32> -> tensor<4x4xf32>
    nn.yield %1 : tensor<4x4xf32>
  }
  %q = nn.matmul %g, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s = nn.fused "add_0" (%q, %b) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>, %c: tensor<4xf32>):
    %0 = nn.add %a, %c : tensor<4x4xf32>, tensor<4xf32> -> tensor<4x4xf32>
    nn.yield %0 : tensor<4x4xf32>
  }
  %r = nn.matmul %s, %q : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %v = nn.matmul %r, %u : tensor<4x4xf32>, tensor<4x64xf32> -> tensor<4x64xf32>
  return %v, %r : tensor<4x64xf32>, tensor<4x4xf32>
}

// The product of a convolution, seen as an image, is finished where it lies: a weight is on its left. Not where the image is read again, nor another's product.
// CHECK-LABEL: @convolution
// CHECK: nn.fused "relu_0_over0"(%{{.*}}) {in_place = array<i64: 0>}
// CHECK-NOT: in_place
func.func @convolution(%x: tensor<2x6x16xf32>, %k: tensor<8x6xf32>) -> (tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>, tensor<2x8x16xf32>, tensor<2x8x4x4xf32>) {
  %w = nn.parameter "w" {value = dense<1.0> : tensor<8x6xf32>} : tensor<8x6xf32>
  %p = nn.matmul %w, %x : tensor<8x6xf32>, tensor<2x6x16xf32> -> tensor<2x8x16xf32>
  %i = nn.reshape %p : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %r = nn.fused "relu_0" (%i) : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32> {
  ^bb0(%a: tensor<2x8x4x4xf32>):
    %0 = nn.relu %a : tensor<2x8x4x4xf32> -> tensor<2x8x4x4xf32>
    nn.yield %0 : tensor<2x8x4x4xf32>
  }
  %s = nn.exp %r : tensor<2x8x4x4xf32> -> tensor<2x8x4x4xf32>
  %q = nn.matmul %w, %x : tensor<8x6xf32>, tensor<2x6x16xf32> -> tensor<2x8x16xf32>
  %j = nn.reshape %q : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %t = nn.fused "relu_1" (%j) : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32> {
  ^bb0(%a: tensor<2x8x4x4xf32>):
    %0 = nn.relu %a : tensor<2x8x4x4xf32> -> tensor<2x8x4x4xf32>
    nn.yield %0 : tensor<2x8x4x4xf32>
  }
  %u = nn.exp %t : tensor<2x8x4x4xf32> -> tensor<2x8x4x4xf32>
  %v = nn.exp %q : tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  %y = nn.matmul %k, %x : tensor<8x6xf32>, tensor<2x6x16xf32> -> tensor<2x8x16xf32>
  %l = nn.reshape %y : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %z = nn.fused "relu_2" (%l) : (tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32> {
  ^bb0(%a: tensor<2x8x4x4xf32>):
    %0 = nn.relu %a : tensor<2x8x4x4xf32> -> tensor<2x8x4x4xf32>
    nn.yield %0 : tensor<2x8x4x4xf32>
  }
  %o = nn.exp %z : tensor<2x8x4x4xf32> -> tensor<2x8x4x4xf32>
  return %s, %u, %v, %o : tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>, tensor<2x8x16xf32>, tensor<2x8x4x4xf32>
}
