// RUN: hpc-opt %s --hpc-write-in-place | FileCheck %s

// Each case differs from one that is written in place in one condition, which alone says no. What is written in place anyway would be read by somebody as it was.

// A parameter that the region reads as a row of its own and under another shape, all of which it sums up.
// CHECK-LABEL: @twoWays
// CHECK: nn.fused "sub_0"
// CHECK-NOT: in_place
func.func @twoWays(%x: tensor<4x4xf32>) -> (tensor<4x4xf32> {nn.writes = "w"}) {
  %w = nn.parameter "w" {value = dense<1.0> : tensor<4x4xf32>} : tensor<4x4xf32>
  %v = nn.reshape %w : tensor<4x4xf32> -> tensor<1x16xf32>
  %r = nn.fused "sub_0" (%v, %w) : (tensor<1x16xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<1x16xf32>, %b: tensor<4x4xf32>):
    %0 = nn.reduce sum %a {axes = array<i64: 1>} : tensor<1x16xf32> -> tensor<1x1xf32>
    %1 = nn.sub %b, %0 : tensor<4x4xf32>, tensor<1x1xf32> -> tensor<4x4xf32>
    nn.yield %1 : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}

// A temporary that a region reads under two shapes.
// CHECK-LABEL: @twoShapes
// CHECK: nn.fused "sub_1"
// CHECK-NOT: in_place
func.func @twoShapes(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>) -> tensor<4x4xf32> {
  %l = nn.matmul %x, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %v = nn.reshape %l : tensor<4x16xf32> -> tensor<1x64xf32>
  %d = nn.fused "sub_1" (%l, %v) : (tensor<4x16xf32>, tensor<1x64xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>, %b: tensor<1x64xf32>):
    %0 = nn.reduce sum %b {axes = array<i64: 1>} : tensor<1x64xf32> -> tensor<1x1xf32>
    %1 = nn.sub %a, %0 : tensor<4x16xf32>, tensor<1x1xf32> -> tensor<4x16xf32>
    nn.yield %1 : tensor<4x16xf32>
  }
  %y = nn.matmul %d, %u {transpose_rhs} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// A temporary of which a view is read afterwards.
// CHECK-LABEL: @viewLater
// CHECK: nn.fused "exp_0"
// CHECK-NOT: in_place
func.func @viewLater(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %l = nn.matmul %x, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %v = nn.reshape %l : tensor<4x16xf32> -> tensor<16x4xf32>
  %d = nn.fused "exp_0" (%l) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %0 = nn.exp %a : tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0 : tensor<4x16xf32>
  }
  %y = nn.matmul %d, %u {transpose_rhs} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  %z = nn.matmul %v, %v {transpose_lhs} : tensor<16x4xf32>, tensor<16x4xf32> -> tensor<4x4xf32>
  return %y, %z : tensor<4x4xf32>, tensor<4x4xf32>
}

// One that the program returns as it is.
// CHECK-LABEL: @returned
// CHECK: nn.fused "exp_1"
// CHECK-NOT: in_place
func.func @returned(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>) -> (tensor<4x4xf32>, tensor<4x16xf32>) {
  %l = nn.matmul %x, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %d = nn.fused "exp_1" (%l) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %0 = nn.exp %a : tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0 : tensor<4x16xf32>
  }
  %y = nn.matmul %d, %u {transpose_rhs} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  return %y, %l : tensor<4x4xf32>, tensor<4x16xf32>
}

// A result that outlives the program has a buffer of its own.
// CHECK-LABEL: @resultReturned
// CHECK: nn.fused "exp_2"
// CHECK-NOT: in_place
func.func @resultReturned(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %l = nn.matmul %x, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %d = nn.fused "exp_2" (%l) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %0 = nn.exp %a : tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0 : tensor<4x16xf32>
  }
  return %d : tensor<4x16xf32>
}

// A weight is no temporary.
// CHECK-LABEL: @weight
// CHECK: nn.fused "exp_3"
// CHECK-NOT: in_place
func.func @weight(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>) -> tensor<4x4xf32> {
  %w = nn.parameter "w" {value = dense<1.0> : tensor<4x16xf32>} : tensor<4x16xf32>
  %d = nn.fused "exp_3" (%w) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %0 = nn.exp %a : tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0 : tensor<4x16xf32>
  }
  %y = nn.matmul %d, %u {transpose_rhs} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// An input is another's.
// CHECK-LABEL: @input
// CHECK: nn.fused "exp_4"
// CHECK-NOT: in_place
func.func @input(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>) -> tensor<4x4xf32> {
  %d = nn.fused "exp_4" (%u) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %0 = nn.exp %a : tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0 : tensor<4x16xf32>
  }
  %y = nn.matmul %d, %d {transpose_rhs} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// A buffer is given on once: of two regions in a row the first writes over the product.
// CHECK-LABEL: @givenOn
// CHECK: nn.fused "exp_5_over0"
// CHECK: nn.fused "neg_0"
// CHECK-NOT: in_place
func.func @givenOn(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>) -> tensor<4x4xf32> {
  %l = nn.matmul %x, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %d = nn.fused "exp_5" (%l) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %0 = nn.exp %a : tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0 : tensor<4x16xf32>
  }
  %e = nn.fused "neg_0" (%d) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %0 = nn.neg %a : tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0 : tensor<4x16xf32>
  }
  %y = nn.matmul %e, %u {transpose_rhs} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// Two results cannot lie in one place.
// CHECK-LABEL: @twoResults
// CHECK: nn.fused "both_0_over0_new"(%{{.*}}) {in_place = array<i64: 0, -1>}
func.func @twoResults(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>) -> tensor<4x4xf32> {
  %l = nn.matmul %x, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %d:2 = nn.fused "both_0" (%l) : (tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  ^bb0(%a: tensor<4x16xf32>):
    %0 = nn.exp %a : tensor<4x16xf32> -> tensor<4x16xf32>
    %1 = nn.neg %a : tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0, %1 : tensor<4x16xf32>, tensor<4x16xf32>
  }
  %y = nn.matmul %d#0, %d#1 {transpose_rhs} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// A state stays where it is, though a temporary ends here.
// CHECK-LABEL: @stateFirst
// CHECK: nn.fused "add_0_over1"(%{{.*}}, %{{.*}}) {in_place = array<i64: 1>}
func.func @stateFirst(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>, %m: tensor<4x16xf32> {nn.state = "m", nn.initial = 0.0 : f64}) -> (tensor<4x16xf32> {nn.writes = "m"}) {
  %l = nn.matmul %x, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %r = nn.fused "add_0" (%l, %m) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>, %b: tensor<4x16xf32>):
    %0 = nn.add %a, %b : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0 : tensor<4x16xf32>
  }
  return %r : tensor<4x16xf32>
}

// A sum of the row reads elements that are written already.
// CHECK-LABEL: @rowSum
// CHECK: nn.fused "center_0"
// CHECK-NOT: in_place
func.func @rowSum(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>) -> tensor<4x4xf32> {
  %l = nn.matmul %x, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %d = nn.fused "center_0" (%l) : (tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>):
    %0 = nn.reduce sum %a {axes = array<i64: 1>} : tensor<4x16xf32> -> tensor<4x1xf32>
    %1 = nn.sub %a, %0 : tensor<4x16xf32>, tensor<4x1xf32> -> tensor<4x16xf32>
    nn.yield %1 : tensor<4x16xf32>
  }
  %y = nn.matmul %d, %u {transpose_rhs} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// So does a transpose, whose result has the same shape.
// CHECK-LABEL: @turned
// CHECK: nn.fused "turn_0"
// CHECK-NOT: in_place
func.func @turned(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %l = nn.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %d = nn.fused "turn_0" (%l) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %0 = nn.transpose %a {permutation = array<i64: 1, 0>} : tensor<4x4xf32> -> tensor<4x4xf32>
    %1 = nn.sub %a, %0 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    nn.yield %1 : tensor<4x4xf32>
  }
  %y = nn.matmul %d, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// An elementwise op that broadcasts reads it for every row.
// CHECK-LABEL: @broadcast
// CHECK: nn.fused "columns_0"
// CHECK-NOT: in_place
func.func @broadcast(%x: tensor<4x4xf32>, %k: tensor<1x4xf32>, %t: tensor<1x4xf32>) -> tensor<4x4xf32> {
  %l = nn.matmul %k, %x : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %d = nn.fused "columns_0" (%l, %x) : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32> {
  ^bb0(%a: tensor<1x4xf32>, %b: tensor<4x4xf32>):
    %0 = nn.mul %a, %b : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %1 = nn.slice %0 {starts = array<i64: 3, 0>, steps = array<i64: 1, 1>} : tensor<4x4xf32> -> tensor<1x4xf32>
    nn.yield %1 : tensor<1x4xf32>
  }
  %y = nn.matmul %d, %x : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %z = nn.matmul %t, %y {transpose_lhs} : tensor<1x4xf32>, tensor<1x4xf32> -> tensor<4x4xf32>
  return %z : tensor<4x4xf32>
}

// Of two temporaries that end here the first is written over.
// CHECK-LABEL: @first
// CHECK: nn.fused "add_1_over0"(%{{.*}}, %{{.*}}) {in_place = array<i64: 0>}
func.func @first(%x: tensor<4x4xf32>, %u: tensor<4x16xf32>) -> tensor<4x4xf32> {
  %l = nn.matmul %x, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %k = nn.matmul %x, %u : tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %d = nn.fused "add_1" (%l, %k) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32> {
  ^bb0(%a: tensor<4x16xf32>, %b: tensor<4x16xf32>):
    %0 = nn.add %a, %b : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
    nn.yield %0 : tensor<4x16xf32>
  }
  %y = nn.matmul %d, %u {transpose_rhs} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// A state that is read for every row of a block, whose sum takes its place: the block's first row would write it.
// CHECK-LABEL: @blockSum
// CHECK: nn.fused "sums_0"
// CHECK-NOT: in_place
func.func @blockSum(%x: tensor<8x32x16xf32>, %m: tensor<8x1x16xf32> {nn.state = "m", nn.initial = 0.0 : f64}) -> (tensor<8x32x16xf32>, tensor<8x1x16xf32> {nn.writes = "m"}) {
  %r:2 = nn.fused "sums_0" (%x, %m) : (tensor<8x32x16xf32>, tensor<8x1x16xf32>) -> (tensor<8x32x16xf32>, tensor<8x1x16xf32>) {
  ^bb0(%a: tensor<8x32x16xf32>, %b: tensor<8x1x16xf32>):
    %0 = nn.mul %a, %b : tensor<8x32x16xf32>, tensor<8x1x16xf32> -> tensor<8x32x16xf32>
    %1 = nn.reduce sum %0 {axes = array<i64: 1>} : tensor<8x32x16xf32> -> tensor<8x1x16xf32>
    nn.yield %0, %1 : tensor<8x32x16xf32>, tensor<8x1x16xf32>
  }
  return %r#0, %r#1 : tensor<8x32x16xf32>, tensor<8x1x16xf32>
}

// A reshape that sums of rows read, and somebody else in another order.
// CHECK-LABEL: @sumAndMore
// CHECK: nn.fused "more_0"
// CHECK-NOT: in_place
func.func @sumAndMore(%m: tensor<256x16xf32> {nn.state = "m", nn.initial = 0.0 : f64}) -> (tensor<256x16xf32> {nn.writes = "m"}, tensor<8x1x16xf32>) {
  %r:2 = nn.fused "more_0" (%m) : (tensor<256x16xf32>) -> (tensor<256x16xf32>, tensor<8x1x16xf32>) {
  ^bb0(%a: tensor<256x16xf32>):
    %0 = nn.reshape %a : tensor<256x16xf32> -> tensor<8x32x16xf32>
    %1 = nn.reduce sum %0 {axes = array<i64: 1>} : tensor<8x32x16xf32> -> tensor<8x1x16xf32>
    %2 = nn.reshape %0 : tensor<8x32x16xf32> -> tensor<256x16xf32>
    %3 = nn.slice %2 {starts = array<i64: 255, 0>, steps = array<i64: -1, 1>} : tensor<256x16xf32> -> tensor<256x16xf32>
    %4 = nn.add %a, %3 : tensor<256x16xf32>, tensor<256x16xf32> -> tensor<256x16xf32>
    nn.yield %4, %1 : tensor<256x16xf32>, tensor<8x1x16xf32>
  }
  return %r#0, %r#1 : tensor<256x16xf32>, tensor<8x1x16xf32>
}
