// RUN: hpc-opt %s -split-input-file --hpc-fuse-regions | FileCheck %s

// Each case differs in one condition from ops that share a region; this condition alone keeps them apart.

// A broadcast does not compute an exponential again for every row: nn.broadcast, an elementwise op that reads it through a negation, the weight of a layer norm.
// CHECK-LABEL: @repeated
// CHECK: nn.fused "exp_16_{{.*}}"(%arg1)
// CHECK: nn.fused "broadcast_9x16_{{.*}}"
// CHECK: nn.fused "neg_16_{{.*}}"(%arg2)
// CHECK: nn.exp
// CHECK: nn.fused "add_9x16_{{.*}}"(%arg0
// CHECK: nn.fused "exp_16_{{.*}}"(%arg3)
// CHECK: nn.fused "layer_norm_9x16_{{.*}}"(%arg0
func.func @repeated(%x: tensor<9x16xf32>, %a: tensor<16xf32>, %b: tensor<16xf32>, %c: tensor<16xf32>) -> (tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>) {
  %0 = nn.exp %a : tensor<16xf32> -> tensor<16xf32>
  %1 = nn.broadcast %0 : tensor<16xf32> -> tensor<9x16xf32>
  %2 = nn.exp %b : tensor<16xf32> -> tensor<16xf32>
  %3 = nn.neg %2 : tensor<16xf32> -> tensor<16xf32>
  %4 = nn.add %x, %3 : tensor<9x16xf32>, tensor<16xf32> -> tensor<9x16xf32>
  %5 = nn.exp %c : tensor<16xf32> -> tensor<16xf32>
  %6 = nn.layer_norm %x weight %5 : tensor<16xf32> {epsilon = 1.0e-5 : f64} : tensor<9x16xf32> -> tensor<9x16xf32>
  return %1, %4, %6 : tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>
}

// A broadcast may repeat eight cheap ops, but not nine, and not one op with nine operands.
// CHECK-LABEL: @manyRepeated
// CHECK: nn.fused "neg_16_{{.*}}"(%arg1)
// CHECK: nn.fused "add_9x16_{{.*}}"(%arg0
// CHECK: nn.fused "concat_18_{{.*}}"(%arg2)
// CHECK: nn.fused "add_9x18_{{.*}}"(%arg3
// CHECK: nn.fused "sub_9x16_{{.*}}"(%arg1, %arg0)
// CHECK-NOT: nn.fused
func.func @manyRepeated(%x: tensor<9x16xf32>, %a: tensor<16xf32>, %b: tensor<2xf32>, %y: tensor<9x18xf32>) -> (tensor<9x16xf32>, tensor<9x18xf32>, tensor<9x16xf32>) {
  %0 = nn.neg %a : tensor<16xf32> -> tensor<16xf32>
  %1 = nn.abs %0 : tensor<16xf32> -> tensor<16xf32>
  %2 = nn.neg %1 : tensor<16xf32> -> tensor<16xf32>
  %3 = nn.abs %2 : tensor<16xf32> -> tensor<16xf32>
  %4 = nn.neg %3 : tensor<16xf32> -> tensor<16xf32>
  %5 = nn.abs %4 : tensor<16xf32> -> tensor<16xf32>
  %6 = nn.neg %5 : tensor<16xf32> -> tensor<16xf32>
  %7 = nn.abs %6 : tensor<16xf32> -> tensor<16xf32>
  %8 = nn.neg %7 : tensor<16xf32> -> tensor<16xf32>
  %9 = nn.add %x, %8 : tensor<9x16xf32>, tensor<16xf32> -> tensor<9x16xf32>
  %c = nn.concat %b, %b, %b, %b, %b, %b, %b, %b, %b {axis = 0 : i64} : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32> -> tensor<18xf32>
  %d = nn.add %y, %c : tensor<9x18xf32>, tensor<18xf32> -> tensor<9x18xf32>
  %e0 = nn.neg %a : tensor<16xf32> -> tensor<16xf32>
  %e1 = nn.abs %e0 : tensor<16xf32> -> tensor<16xf32>
  %e2 = nn.neg %e1 : tensor<16xf32> -> tensor<16xf32>
  %e3 = nn.abs %e2 : tensor<16xf32> -> tensor<16xf32>
  %e4 = nn.neg %e3 : tensor<16xf32> -> tensor<16xf32>
  %e5 = nn.abs %e4 : tensor<16xf32> -> tensor<16xf32>
  %e6 = nn.neg %e5 : tensor<16xf32> -> tensor<16xf32>
  %e7 = nn.abs %e6 : tensor<16xf32> -> tensor<16xf32>
  %f = nn.sub %x, %e7 : tensor<9x16xf32>, tensor<16xf32> -> tensor<9x16xf32>
  return %9, %d, %f : tensor<9x16xf32>, tensor<9x18xf32>, tensor<9x16xf32>
}

// A concatenation evaluates its operands at every index, so it takes in neither an exponential nor nine ops.
// CHECK-LABEL: @chosen
// CHECK: nn.fused "exp_9x16_{{.*}}"(%arg0)
// CHECK: nn.fused "concat_9x32_{{.*}}"
// CHECK: nn.fused "neg_9x16_{{.*}}"(%arg0)
// CHECK: nn.fused "concat_9x32_{{.*}}"
// CHECK-NOT: nn.fused
func.func @chosen(%x: tensor<9x16xf32>) -> (tensor<9x32xf32>, tensor<9x32xf32>) {
  %0 = nn.exp %x : tensor<9x16xf32> -> tensor<9x16xf32>
  %1 = nn.concat %0, %x {axis = 1 : i64} : tensor<9x16xf32>, tensor<9x16xf32> -> tensor<9x32xf32>
  %a0 = nn.neg %x : tensor<9x16xf32> -> tensor<9x16xf32>
  %a1 = nn.abs %a0 : tensor<9x16xf32> -> tensor<9x16xf32>
  %a2 = nn.neg %a1 : tensor<9x16xf32> -> tensor<9x16xf32>
  %a3 = nn.abs %a2 : tensor<9x16xf32> -> tensor<9x16xf32>
  %a4 = nn.neg %a3 : tensor<9x16xf32> -> tensor<9x16xf32>
  %a5 = nn.abs %a4 : tensor<9x16xf32> -> tensor<9x16xf32>
  %a6 = nn.neg %a5 : tensor<9x16xf32> -> tensor<9x16xf32>
  %a7 = nn.abs %a6 : tensor<9x16xf32> -> tensor<9x16xf32>
  %a8 = nn.neg %a7 : tensor<9x16xf32> -> tensor<9x16xf32>
  %2 = nn.concat %a8, %x {axis = 1 : i64} : tensor<9x16xf32>, tensor<9x16xf32> -> tensor<9x32xf32>
  return %1, %2 : tensor<9x32xf32>, tensor<9x32xf32>
}

// A transpose would read rows that are not reduced yet: of a softmax, of a softmax through a negation, of a maximum over leading dims.
// CHECK-LABEL: @turned
// CHECK: nn.fused "softmax_16x16_{{.*}}"(%arg0)
// CHECK: nn.fused "transpose_16x16_
// CHECK: nn.fused "softmax_16x16_{{.*}}"(%arg0)
// CHECK: nn.neg
// CHECK: nn.fused "transpose_16x16_
// CHECK: nn.fused "reduce_1x16x16_{{.*}}"(%arg1)
// CHECK: nn.fused "transpose_1x16x16_
func.func @turned(%x: tensor<16x16xf32>, %y: tensor<9x16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<1x16x16xf32>) {
  %0 = nn.softmax %x : tensor<16x16xf32> -> tensor<16x16xf32>
  %1 = nn.transpose %0 {permutation = array<i64: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
  %2 = nn.softmax %x : tensor<16x16xf32> -> tensor<16x16xf32>
  %3 = nn.neg %2 : tensor<16x16xf32> -> tensor<16x16xf32>
  %4 = nn.transpose %3 {permutation = array<i64: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32>
  %5 = nn.reduce max %y {axes = array<i64: 0>} : tensor<9x16x16xf32> -> tensor<1x16x16xf32>
  %6 = nn.transpose %5 {permutation = array<i64: 0, 2, 1>} : tensor<1x16x16xf32> -> tensor<1x16x16xf32>
  return %1, %4, %6 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<1x16x16xf32>
}

// A broadcast does not take in a reduction, nor does a reduction over leading dims, nor an op that reads it through reshapes. A running sum takes in nothing.
// CHECK-LABEL: @reduced
// CHECK: nn.fused "reduce_9x1_{{.*}}"(%arg0)
// CHECK: nn.fused "broadcast_9x16_
// CHECK: nn.fused "softmax_1x16_{{.*}}"(%arg1)
// CHECK: nn.fused "reduce_1x16_
// CHECK: nn.fused "reduce_1x16_{{.*}}"(%arg0)
// CHECK: nn.reshape
// CHECK: nn.reshape
// CHECK: nn.fused "neg_1x16_
// CHECK: nn.fused "abs_9x16_{{.*}}"(%arg0)
// CHECK: nn.fused "cumsum_9x16_
func.func @reduced(%x: tensor<9x16xf32>, %y: tensor<1x16xf32>) -> (tensor<9x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<9x16xf32>) {
  %0 = nn.reduce max %x {axes = array<i64: 1>} : tensor<9x16xf32> -> tensor<9x1xf32>
  %1 = nn.broadcast %0 : tensor<9x1xf32> -> tensor<9x16xf32>
  %2 = nn.softmax %y : tensor<1x16xf32> -> tensor<1x16xf32>
  %3 = nn.reduce max %2 {axes = array<i64: 0>} : tensor<1x16xf32> -> tensor<1x16xf32>
  %4 = nn.reduce max %x {axes = array<i64: 0>} : tensor<9x16xf32> -> tensor<1x16xf32>
  %5 = nn.reshape %4 : tensor<1x16xf32> -> tensor<16xf32>
  %6 = nn.reshape %5 : tensor<16xf32> -> tensor<1x16xf32>
  %7 = nn.neg %6 : tensor<1x16xf32> -> tensor<1x16xf32>
  %8 = nn.abs %x : tensor<9x16xf32> -> tensor<9x16xf32>
  %9 = nn.cumsum %8 {axis = 0 : i64} : tensor<9x16xf32> -> tensor<9x16xf32>
  return %1, %3, %7, %9 : tensor<9x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<9x16xf32>
}

// A reduction over no dims is no sum of rows; without the check the compiler would read past the axes.
// CHECK-LABEL: @noAxes
// CHECK: nn.fused "reduce_9x16_{{.*}}"(%arg0)
// CHECK: nn.fused "exp_9x16_{{.*}}"(%arg0)
func.func @noAxes(%x: tensor<9x16xf32>) -> (tensor<9x16xf32>, tensor<9x16xf32>) {
  %0 = nn.reduce sum %x {axes = array<i64>} : tensor<9x16xf32> -> tensor<9x16xf32>
  %1 = nn.exp %x : tensor<9x16xf32> -> tensor<9x16xf32>
  return %0, %1 : tensor<9x16xf32>, tensor<9x16xf32>
}

// Each pass over a row repeats the passes before it: four share a region, the fifth does not. A sum along the row of values that used its maximum is such a pass.
// CHECK-LABEL: @passes
// CHECK: nn.fused "sub_9x16_
// CHECK: nn.fused "sub_9x16_
// CHECK-NOT: nn.fused
// CHECK: return
func.func @passes(%x: tensor<9x16xf32>) -> tensor<9x16xf32> {
  %a = nn.reduce max %x {axes = array<i64: 1>} : tensor<9x16xf32> -> tensor<9x1xf32>
  %0 = nn.sub %x, %a : tensor<9x16xf32>, tensor<9x1xf32> -> tensor<9x16xf32>
  %b = nn.reduce sum %0 {axes = array<i64: 1>} : tensor<9x16xf32> -> tensor<9x1xf32>
  %1 = nn.sub %0, %b : tensor<9x16xf32>, tensor<9x1xf32> -> tensor<9x16xf32>
  %c = nn.reduce max %1 {axes = array<i64: 1>} : tensor<9x16xf32> -> tensor<9x1xf32>
  %2 = nn.sub %1, %c : tensor<9x16xf32>, tensor<9x1xf32> -> tensor<9x16xf32>
  %d = nn.reduce sum %2 {axes = array<i64: 1>} : tensor<9x16xf32> -> tensor<9x1xf32>
  %3 = nn.sub %2, %d : tensor<9x16xf32>, tensor<9x1xf32> -> tensor<9x16xf32>
  %e = nn.reduce max %3 {axes = array<i64: 1>} : tensor<9x16xf32> -> tensor<9x1xf32>
  %4 = nn.sub %3, %e : tensor<9x16xf32>, tensor<9x1xf32> -> tensor<9x16xf32>
  return %4 : tensor<9x16xf32>
}

// Results of different shapes need different loops: fewer columns, fewer rows, a softmax over a row of one element. A reshape that needs a division for its index stays outside, and so does
// a reshape of an input.
// CHECK-LABEL: @shapes
// CHECK: nn.fused "neg_9x16_{{.*}}"(%arg0)
// CHECK: nn.fused "abs_9x8_
// CHECK: nn.fused "neg_9x16_{{.*}}"(%arg0)
// CHECK: nn.fused "abs_8x1_
// CHECK: nn.fused "reduce_9x1_
// CHECK: nn.fused "softmax_9x1_
// CHECK: nn.fused "exp_2x33x2_
// CHECK: nn.reshape
// CHECK: nn.fused "add_2x66_
// CHECK: %[[R:.*]] = nn.reshape %arg0
// CHECK: nn.fused "neg_12x12_{{.*}}"(%[[R]])
func.func @shapes(%x: tensor<9x16xf32>, %y: tensor<2x33x2xf32>, %z: tensor<2x66xf32>) -> (tensor<9x16xf32>, tensor<9x8xf32>, tensor<9x16xf32>, tensor<8x1xf32>, tensor<9x1xf32>, tensor<2x66xf32>, tensor<12x12xf32>) {
  %0 = nn.neg %x : tensor<9x16xf32> -> tensor<9x16xf32>
  %1 = nn.slice %0 {starts = array<i64: 0, 4>, steps = array<i64: 1, 1>} : tensor<9x16xf32> -> tensor<9x8xf32>
  %2 = nn.abs %1 : tensor<9x8xf32> -> tensor<9x8xf32>
  %3 = nn.neg %x : tensor<9x16xf32> -> tensor<9x16xf32>
  %4 = nn.slice %3 {starts = array<i64: 1, 4>, steps = array<i64: 1, 1>} : tensor<9x16xf32> -> tensor<8x1xf32>
  %5 = nn.abs %4 : tensor<8x1xf32> -> tensor<8x1xf32>
  %6 = nn.reduce sum %x {axes = array<i64: 1>} : tensor<9x16xf32> -> tensor<9x1xf32>
  %7 = nn.softmax %6 : tensor<9x1xf32> -> tensor<9x1xf32>
  %8 = nn.exp %y : tensor<2x33x2xf32> -> tensor<2x33x2xf32>
  %9 = nn.reshape %8 : tensor<2x33x2xf32> -> tensor<2x66xf32>
  %10 = nn.add %9, %z : tensor<2x66xf32>, tensor<2x66xf32> -> tensor<2x66xf32>
  %11 = nn.reshape %x : tensor<9x16xf32> -> tensor<12x12xf32>
  %12 = nn.exp %11 : tensor<12x12xf32> -> tensor<12x12xf32>
  %13 = nn.neg %12 : tensor<12x12xf32> -> tensor<12x12xf32>
  return %0, %2, %3, %5, %7, %10, %13 : tensor<9x16xf32>, tensor<9x8xf32>, tensor<9x16xf32>, tensor<8x1xf32>, tensor<9x1xf32>, tensor<2x66xf32>, tensor<12x12xf32>
}

// -----

// A sum of blocks of rows shares a region with the rows. These do not: a maximum, a sum over another dim, over dims that are not adjacent, of no rows, of one column, in bf16.
// CHECK-LABEL: @noRowSums
// CHECK: nn.fused "exp_8x8x768_
// CHECK: nn.fused "reduce_8x1x768_
// CHECK: nn.fused "exp_8x8x768_
// CHECK: nn.fused "reduce_1x8x768_
// CHECK: nn.fused "exp_8x8x8x16_
// CHECK: nn.fused "reduce_1x8x1x16_
// CHECK: nn.fused "exp_8x0x768_
// CHECK: nn.fused "reduce_8x1x768_
// CHECK: nn.fused "exp_8x8x1_
// CHECK: nn.fused "reduce_8x1x1_
// CHECK: nn.fused "exp_8x8x768_
// CHECK: nn.fused "reduce_8x1x768_
func.func @noRowSums(%x: tensor<8x8x768xf32>, %y: tensor<8x8x8x16xf32>, %z: tensor<8x0x768xf32>, %c: tensor<8x8x1xf32>, %h: tensor<8x8x768xbf16>)
    -> (tensor<8x8x768xf32>, tensor<8x1x768xf32>, tensor<8x8x768xf32>, tensor<1x8x768xf32>, tensor<8x8x8x16xf32>, tensor<1x8x1x16xf32>, tensor<8x0x768xf32>, tensor<8x1x768xf32>, tensor<8x8x1xf32>, tensor<8x1x1xf32>, tensor<8x8x768xbf16>, tensor<8x1x768xbf16>) {
  %0 = nn.exp %x : tensor<8x8x768xf32> -> tensor<8x8x768xf32>
  %1 = nn.reduce max %0 {axes = array<i64: 1>} : tensor<8x8x768xf32> -> tensor<8x1x768xf32>
  %2 = nn.exp %x : tensor<8x8x768xf32> -> tensor<8x8x768xf32>
  %3 = nn.reduce sum %2 {axes = array<i64: 0>} : tensor<8x8x768xf32> -> tensor<1x8x768xf32>
  %4 = nn.exp %y : tensor<8x8x8x16xf32> -> tensor<8x8x8x16xf32>
  %5 = nn.reduce sum %4 {axes = array<i64: 0, 2>} : tensor<8x8x8x16xf32> -> tensor<1x8x1x16xf32>
  %6 = nn.exp %z : tensor<8x0x768xf32> -> tensor<8x0x768xf32>
  %7 = nn.reduce sum %6 {axes = array<i64: 1>} : tensor<8x0x768xf32> -> tensor<8x1x768xf32>
  %8 = nn.exp %c : tensor<8x8x1xf32> -> tensor<8x8x1xf32>
  %9 = nn.reduce sum %8 {axes = array<i64: 1>} : tensor<8x8x1xf32> -> tensor<8x1x1xf32>
  %10 = nn.exp %h : tensor<8x8x768xbf16> -> tensor<8x8x768xbf16>
  %11 = nn.reduce sum %10 {axes = array<i64: 1>} : tensor<8x8x768xbf16> -> tensor<8x1x768xbf16>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11 : tensor<8x8x768xf32>, tensor<8x1x768xf32>, tensor<8x8x768xf32>, tensor<1x8x768xf32>, tensor<8x8x8x16xf32>, tensor<1x8x1x16xf32>, tensor<8x0x768xf32>, tensor<8x1x768xf32>, tensor<8x8x1xf32>, tensor<8x1x1xf32>, tensor<8x8x768xbf16>, tensor<8x1x768xbf16>
}

// -----

// A sum of rows joins another reader of its operand. These do not: rows of half the width, a lookup of 128 rows of the table, blocks of 4 rows beside blocks of 8, two maxima.
// CHECK-LABEL: @neighbours
// CHECK: nn.fused "exp_64x768_{{.*}}"(%arg0)
// CHECK: nn.fused "reduce_16x1x384_
// CHECK: nn.fused "embedding_128x768_{{.*}}"(%arg1, %arg2)
// CHECK: nn.fused "reduce_8x1x768_
// CHECK: %{{.*}}:2 = nn.fused "{{.*}}"(%arg3)
// CHECK: nn.fused "reduce_16x1x768_
// CHECK: nn.fused "reduce_8x1x768_{{.*}}"(%arg4)
// CHECK: nn.fused "reduce_8x1x768_{{.*}}"(%arg4)
func.func @neighbours(%x: tensor<64x768xf32>, %table: tensor<64x768xf32>, %ids: tensor<128xi64>, %y: tensor<64x768xf32>, %z: tensor<8x8x768xf32>)
    -> (tensor<64x768xf32>, tensor<16x1x384xf32>, tensor<128x768xf32>, tensor<8x1x768xf32>, tensor<64x768xf32>, tensor<8x1x768xf32>, tensor<16x1x768xf32>, tensor<8x1x768xf32>, tensor<8x1x768xf32>) {
  %0 = nn.exp %x : tensor<64x768xf32> -> tensor<64x768xf32>
  %1 = nn.reshape %x : tensor<64x768xf32> -> tensor<16x8x384xf32>
  %2 = nn.reduce sum %1 {axes = array<i64: 1>} : tensor<16x8x384xf32> -> tensor<16x1x384xf32>
  %3 = nn.embedding %table, %ids {vocabulary = 64 : i64} : tensor<64x768xf32>, tensor<128xi64> -> tensor<128x768xf32>
  %4 = nn.reshape %table : tensor<64x768xf32> -> tensor<8x8x768xf32>
  %5 = nn.reduce sum %4 {axes = array<i64: 1>} : tensor<8x8x768xf32> -> tensor<8x1x768xf32>
  %6 = nn.exp %y : tensor<64x768xf32> -> tensor<64x768xf32>
  %7 = nn.reshape %y : tensor<64x768xf32> -> tensor<8x8x768xf32>
  %8 = nn.reduce sum %7 {axes = array<i64: 1>} : tensor<8x8x768xf32> -> tensor<8x1x768xf32>
  %9 = nn.reshape %y : tensor<64x768xf32> -> tensor<16x4x768xf32>
  %10 = nn.reduce sum %9 {axes = array<i64: 1>} : tensor<16x4x768xf32> -> tensor<16x1x768xf32>
  %11 = nn.reduce max %z {axes = array<i64: 1>} : tensor<8x8x768xf32> -> tensor<8x1x768xf32>
  %12 = nn.reduce min %z {axes = array<i64: 1>} : tensor<8x8x768xf32> -> tensor<8x1x768xf32>
  return %0, %2, %3, %5, %6, %8, %10, %11, %12 : tensor<64x768xf32>, tensor<16x1x384xf32>, tensor<128x768xf32>, tensor<8x1x768xf32>, tensor<64x768xf32>, tensor<8x1x768xf32>, tensor<16x1x768xf32>, tensor<8x1x768xf32>, tensor<8x1x768xf32>
}

// A sum whose only reader is a reshape outside of the region is a result; it does not count as read inside.
// CHECK-LABEL: @sumShown
// CHECK: %[[S:.*]]:2 = nn.fused
// CHECK-NOT: nn.fused
// CHECK: nn.reshape %[[S]]
func.func @sumShown(%x: tensor<64x768xf32>) -> (tensor<8x768xf32>, tensor<64x768xf32>) {
  %0 = nn.reshape %x : tensor<64x768xf32> -> tensor<8x8x768xf32>
  %1 = nn.reduce sum %0 {axes = array<i64: 1>} : tensor<8x8x768xf32> -> tensor<8x1x768xf32>
  %2 = nn.reshape %1 : tensor<8x1x768xf32> -> tensor<8x768xf32>
  %3 = nn.mul %x, %x : tensor<64x768xf32>, tensor<64x768xf32> -> tensor<64x768xf32>
  return %2, %3 : tensor<8x768xf32>, tensor<64x768xf32>
}

// -----

// A path leaves the group and comes back through the middle operand of a concatenation. Ancestors does not know this path, since it follows first and last operands.
// CHECK-LABEL: @middle
// CHECK: nn.fused "exp_4x4_
// CHECK: nn.fused "concat_12x4_
// CHECK: nn.matmul
// CHECK: nn.fused "add_4x4_
func.func @middle(%x: tensor<4x4xf32>, %w: tensor<4x12xf32>) -> tensor<4x4xf32> {
  %a = nn.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %e = nn.exp %x : tensor<4x4xf32> -> tensor<4x4xf32>
  %b = nn.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %c = nn.concat %a, %e, %b {axis = 0 : i64} : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32> -> tensor<12x4xf32>
  %m = nn.matmul %w, %c : tensor<4x12xf32>, tensor<12x4xf32> -> tensor<4x4xf32>
  %s = nn.add %m, %e : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}

// The sum has joined the group after the matmul; the group before the matmul stays apart, though the sum reads these two groups only.
// CHECK-LABEL: @second
// CHECK: nn.fused "exp_4x4_
// CHECK: nn.matmul
// CHECK: nn.fused "add_4x4_
// CHECK-NOT: nn.fused
// CHECK: return
func.func @second(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = nn.exp %x : tensor<4x4xf32> -> tensor<4x4xf32>
  %m = nn.matmul %e, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %t = nn.tanh %m : tensor<4x4xf32> -> tensor<4x4xf32>
  %s = nn.add %t, %e : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}

// An op that repeats forward stays apart from forward, whichever comes first. Either of them joins a gradient.
// CHECK-LABEL: @repetition
// CHECK: nn.fused "exp_4x4_
// CHECK: nn.fused "neg_4x4_
// CHECK: nn.fused "tanh_4x4_
// CHECK: nn.fused "abs_4x4_
// CHECK: nn.fused "relu_4x4_{{.*}}"(%arg2)
// CHECK: nn.sigmoid
// CHECK: nn.relu
// CHECK: nn.fused "neg_4x4_{{.*}}"(%arg3)
// CHECK: nn.sigmoid
// CHECK: nn.neg
// CHECK-NOT: nn.fused
// CHECK: return
func.func @repetition(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %z: tensor<4x4xf32>, %u: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = nn.exp %x : tensor<4x4xf32> -> tensor<4x4xf32> loc(fused<"repeated">["a"])
  %1 = nn.neg %0 : tensor<4x4xf32> -> tensor<4x4xf32> loc("b")
  %2 = nn.tanh %y : tensor<4x4xf32> -> tensor<4x4xf32> loc("c")
  %3 = nn.abs %2 : tensor<4x4xf32> -> tensor<4x4xf32> loc(fused<"repeated">["d"])
  %4 = nn.sigmoid %z : tensor<4x4xf32> -> tensor<4x4xf32> loc(fused<"repeated">["e"])
  %5 = nn.relu %4 : tensor<4x4xf32> -> tensor<4x4xf32> loc(fused<"gradient">["f"])
  %6 = nn.sigmoid %u : tensor<4x4xf32> -> tensor<4x4xf32> loc("g")
  %7 = nn.neg %6 : tensor<4x4xf32> -> tensor<4x4xf32> loc(fused<"gradient">["h"])
  return %1, %3, %5, %7 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
