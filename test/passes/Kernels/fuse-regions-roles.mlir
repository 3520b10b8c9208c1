// RUN: hpc-opt %s -split-input-file --hpc-fuse-regions | FileCheck %s

// Ops that each reader computes again, and tails that a matmul leaves out. Each case differs in one condition from such an op; this condition alone decides.

// Each of two readers computes a buffer times a number again, though a region makes the number; one more region computes it for the output.
// CHECK-LABEL: @factor
// CHECK: nn.fused "neg_scalar_
// CHECK: nn.fused "mul_9x16_{{.*}}"(%arg0, %{{.*}})
// CHECK: nn.fused "cumsum_9x16_{{.*}}"(%arg0, %{{.*}})
// CHECK: nn.mul
// CHECK: nn.fused "exp_9x16_{{.*}}"(%arg0, %{{.*}})
// CHECK: nn.mul
// CHECK: return
func.func @factor(%x: tensor<9x16xf32>, %f: tensor<f32>) -> (tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>) {
  %n = nn.neg %f : tensor<f32> -> tensor<f32>
  %0 = nn.mul %x, %n : tensor<9x16xf32>, tensor<f32> -> tensor<9x16xf32>
  %1 = nn.cumsum %0 {axis = 0 : i64} : tensor<9x16xf32> -> tensor<9x16xf32>
  %2 = nn.exp %0 : tensor<9x16xf32> -> tensor<9x16xf32>
  return %0, %1, %2 : tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>
}

// These are computed once, in one region with both readers: an op without a number, a quotient, an op on another region's result, a number that adds a dim, a comparison, a bias, an op on two
// tensors, a lookup.
// CHECK-LABEL: @once
// CHECK-COUNT-8: nn.fused {{.*}} -> (
// CHECK-NOT: nn.fused
// CHECK: return
func.func @once(%x: tensor<9x16xf32>, %f: tensor<f32>, %one: tensor<1x1x1xf32>, %b: tensor<16xf32>, %y: tensor<9x16xf32>, %table: tensor<1x16xf32>, %id: tensor<1xi64>)
    -> (tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<1x9x16xf32>, tensor<1x9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>,
        tensor<9x16xf32>, tensor<9x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
  %a = nn.neg %x : tensor<9x16xf32> -> tensor<9x16xf32>
  %a0 = nn.exp %a : tensor<9x16xf32> -> tensor<9x16xf32>
  %a1 = nn.tanh %a : tensor<9x16xf32> -> tensor<9x16xf32>
  %c = nn.div %x, %f : tensor<9x16xf32>, tensor<f32> -> tensor<9x16xf32>
  %c0 = nn.exp %c : tensor<9x16xf32> -> tensor<9x16xf32>
  %c1 = nn.tanh %c : tensor<9x16xf32> -> tensor<9x16xf32>
  %d = nn.sqrt %x : tensor<9x16xf32> -> tensor<9x16xf32>
  %e = nn.mul %d, %f : tensor<9x16xf32>, tensor<f32> -> tensor<9x16xf32>
  %e0 = nn.exp %e : tensor<9x16xf32> -> tensor<9x16xf32>
  %e1 = nn.tanh %e : tensor<9x16xf32> -> tensor<9x16xf32>
  %g = nn.mul %x, %one : tensor<9x16xf32>, tensor<1x1x1xf32> -> tensor<1x9x16xf32>
  %g0 = nn.exp %g : tensor<1x9x16xf32> -> tensor<1x9x16xf32>
  %g1 = nn.tanh %g : tensor<1x9x16xf32> -> tensor<1x9x16xf32>
  %h = nn.compare gt %x, %f : tensor<9x16xf32>, tensor<f32> -> tensor<9x16xi1>
  %h0 = nn.select %h, %x, %f : tensor<9x16xi1>, tensor<9x16xf32>, tensor<f32> -> tensor<9x16xf32>
  %h1 = nn.select %h, %f, %x : tensor<9x16xi1>, tensor<f32>, tensor<9x16xf32> -> tensor<9x16xf32>
  %i = nn.mul %x, %b : tensor<9x16xf32>, tensor<16xf32> -> tensor<9x16xf32>
  %i0 = nn.exp %i : tensor<9x16xf32> -> tensor<9x16xf32>
  %i1 = nn.tanh %i : tensor<9x16xf32> -> tensor<9x16xf32>
  %j = nn.mul %x, %y : tensor<9x16xf32>, tensor<9x16xf32> -> tensor<9x16xf32>
  %j0 = nn.exp %j : tensor<9x16xf32> -> tensor<9x16xf32>
  %j1 = nn.tanh %j : tensor<9x16xf32> -> tensor<9x16xf32>
  %k = nn.embedding %table, %id {vocabulary = 1 : i64} : tensor<1x16xf32>, tensor<1xi64> -> tensor<1x16xf32>
  %k0 = nn.neg %k : tensor<1x16xf32> -> tensor<1x16xf32>
  %k1 = nn.abs %k : tensor<1x16xf32> -> tensor<1x16xf32>
  return %a0, %a1, %c0, %c1, %e0, %e1, %g0, %g1, %h0, %h1, %i0, %i1, %j0, %j1, %k0, %k1 : tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<1x9x16xf32>, tensor<1x9x16xf32>,
      tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
}

// A buffer times a number is computed once, too, if it has one reader, if one op and the output read it, and if a matmul reads it, directly or through a reshape.
// CHECK-LABEL: @readOnce
// CHECK: nn.fused "mul_9x16_{{.*}}"(%arg0, %arg1)
// CHECK: nn.fused "cumsum_9x16_
// CHECK: nn.fused {{.*}} -> (tensor<9x16xf32>, tensor<9x16xf32>)
// CHECK: nn.fused {{.*}} -> (tensor<9x16xf32>, tensor<9x16xf32>)
// CHECK: nn.matmul
// CHECK: nn.fused {{.*}} -> (tensor<9x16xf32>, tensor<9x16xf32>)
// CHECK: nn.reshape
// CHECK: nn.matmul
func.func @readOnce(%x: tensor<9x16xf32>, %f: tensor<f32>, %w: tensor<16x5xf32>, %v: tensor<16x5xf32>) -> (tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x5xf32>, tensor<9x16xf32>, tensor<1x9x5xf32>, tensor<9x16xf32>) {
  %0 = nn.mul %x, %f : tensor<9x16xf32>, tensor<f32> -> tensor<9x16xf32>
  %1 = nn.cumsum %0 {axis = 0 : i64} : tensor<9x16xf32> -> tensor<9x16xf32>
  %2 = nn.mul %x, %f : tensor<9x16xf32>, tensor<f32> -> tensor<9x16xf32>
  %3 = nn.exp %2 : tensor<9x16xf32> -> tensor<9x16xf32>
  %4 = nn.mul %x, %f : tensor<9x16xf32>, tensor<f32> -> tensor<9x16xf32>
  %5 = nn.exp %4 : tensor<9x16xf32> -> tensor<9x16xf32>
  %6 = nn.matmul %4, %w : tensor<9x16xf32>, tensor<16x5xf32> -> tensor<9x5xf32>
  %7 = nn.mul %x, %f : tensor<9x16xf32>, tensor<f32> -> tensor<9x16xf32>
  %8 = nn.exp %7 : tensor<9x16xf32> -> tensor<9x16xf32>
  %9 = nn.reshape %7 : tensor<9x16xf32> -> tensor<1x9x16xf32>
  %10 = nn.matmul %9, %w : tensor<1x9x16xf32>, tensor<16x5xf32> -> tensor<1x9x5xf32>
  return %1, %2, %3, %6, %5, %10, %8 : tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x16xf32>, tensor<9x5xf32>, tensor<9x16xf32>, tensor<1x9x5xf32>, tensor<9x16xf32>
}

// Each reader computes a view of a view of a buffer again. A view of a region's result is computed in that region, exponentials of positions are computed once, and a view whose reshape
// needs a division for its index is written once.
// CHECK-LABEL: @views
// CHECK: nn.fused "cumsum_4x9_{{.*}}"(%arg0)
// CHECK: nn.fused "exp_4x9_{{.*}}"(%arg0)
// CHECK: nn.transpose
// CHECK: nn.fused "{{.*}}_16x9_{{.*}}"(%arg0)
// CHECK: nn.tanh
// CHECK: nn.transpose
// CHECK: nn.fused "cumsum_16x9_
// CHECK: nn.fused "exp_16_{{.*}}"()
// CHECK: nn.fused "cumsum_16_
// CHECK: %[[S:.*]] = nn.fused "slice_2x33x2_{{.*}}"(%arg1)
// CHECK: %[[R:.*]] = nn.reshape %[[S]]
// CHECK: nn.fused "exp_2x66_{{.*}}"(%[[R]])
func.func @views(%x: tensor<9x16xf32>, %y: tensor<4x33x2xf32>) -> (tensor<4x9xf32>, tensor<4x9xf32>, tensor<16x9xf32>, tensor<16xf32>, tensor<2x66xf32>) {
  %0 = nn.slice %x {starts = array<i64: 0, 4>, steps = array<i64: 1, 1>} : tensor<9x16xf32> -> tensor<9x4xf32>
  %1 = nn.transpose %0 {permutation = array<i64: 1, 0>} : tensor<9x4xf32> -> tensor<4x9xf32>
  %2 = nn.cumsum %1 {axis = 0 : i64} : tensor<4x9xf32> -> tensor<4x9xf32>
  %3 = nn.exp %1 : tensor<4x9xf32> -> tensor<4x9xf32>
  %4 = nn.tanh %x : tensor<9x16xf32> -> tensor<9x16xf32>
  %5 = nn.transpose %4 {permutation = array<i64: 1, 0>} : tensor<9x16xf32> -> tensor<16x9xf32>
  %6 = nn.cumsum %5 {axis = 0 : i64} : tensor<16x9xf32> -> tensor<16x9xf32>
  %7 = nn.iota {dim = 0 : i64} : tensor<16xi64>
  %8 = nn.cast %7 : tensor<16xi64> -> tensor<16xf32>
  %9 = nn.exp %8 : tensor<16xf32> -> tensor<16xf32>
  %10 = nn.cumsum %9 {axis = 0 : i64} : tensor<16xf32> -> tensor<16xf32>
  %11 = nn.slice %y {starts = array<i64: 1, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<4x33x2xf32> -> tensor<2x33x2xf32>
  %12 = nn.reshape %11 : tensor<2x33x2xf32> -> tensor<2x66xf32>
  %13 = nn.exp %12 : tensor<2x66xf32> -> tensor<2x66xf32>
  return %2, %3, %6, %10, %13 : tensor<4x9xf32>, tensor<4x9xf32>, tensor<16x9xf32>, tensor<16xf32>, tensor<2x66xf32>
}

// Each reader of a part adds a bias again. These are computed once: a bias of which all elements are read in another order, a concatenation, an exponential, a sum with a region's result.
// CHECK-LABEL: @parts
// CHECK: %[[A:.*]]:2 = nn.fused "slice_9x16_{{.*}}"(%arg0, %arg1)
// CHECK: nn.fused "transpose_16x9_{{.*}}"(%[[A]]#0)
// CHECK: %[[C:.*]] = nn.fused "concat_9x32_
// CHECK: nn.fused "slice_9x8_{{.*}}"(%[[C]])
// CHECK: nn.fused "slice_9x8_{{.*}}"(%[[C]])
// CHECK: %[[E:.*]] = nn.fused "exp_9x16_
// CHECK: nn.fused "slice_9x8_{{.*}}"(%[[E]])
// CHECK: nn.fused "slice_9x8_{{.*}}"(%[[E]])
// CHECK: %[[B:.*]] = nn.fused "add_9x16_
// CHECK: nn.tanh
// CHECK: nn.fused "slice_9x8_{{.*}}"(%[[B]])
// CHECK: nn.fused "slice_9x8_{{.*}}"(%[[B]])
func.func @parts(%x: tensor<9x16xf32>, %b: tensor<16xf32>)
    -> (tensor<16x9xf32>, tensor<9x16xf32>, tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>) {
  %0 = nn.add %x, %b : tensor<9x16xf32>, tensor<16xf32> -> tensor<9x16xf32>
  %1 = nn.transpose %0 {permutation = array<i64: 1, 0>} : tensor<9x16xf32> -> tensor<16x9xf32>
  %2 = nn.slice %0 {starts = array<i64: 8, 0>, steps = array<i64: -1, 1>} : tensor<9x16xf32> -> tensor<9x16xf32>
  %3 = nn.cumsum %1 {axis = 0 : i64} : tensor<16x9xf32> -> tensor<16x9xf32>
  %4 = nn.cumsum %2 {axis = 0 : i64} : tensor<9x16xf32> -> tensor<9x16xf32>
  %5 = nn.concat %x, %x {axis = 1 : i64} : tensor<9x16xf32>, tensor<9x16xf32> -> tensor<9x32xf32>
  %6 = nn.slice %5 {starts = array<i64: 0, 4>, steps = array<i64: 1, 1>} : tensor<9x32xf32> -> tensor<9x8xf32>
  %7 = nn.slice %5 {starts = array<i64: 0, 12>, steps = array<i64: 1, 1>} : tensor<9x32xf32> -> tensor<9x8xf32>
  %8 = nn.cumsum %6 {axis = 0 : i64} : tensor<9x8xf32> -> tensor<9x8xf32>
  %9 = nn.cumsum %7 {axis = 0 : i64} : tensor<9x8xf32> -> tensor<9x8xf32>
  %10 = nn.exp %x : tensor<9x16xf32> -> tensor<9x16xf32>
  %11 = nn.slice %10 {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<9x16xf32> -> tensor<9x8xf32>
  %12 = nn.slice %10 {starts = array<i64: 0, 8>, steps = array<i64: 1, 1>} : tensor<9x16xf32> -> tensor<9x8xf32>
  %13 = nn.cumsum %11 {axis = 0 : i64} : tensor<9x8xf32> -> tensor<9x8xf32>
  %14 = nn.cumsum %12 {axis = 0 : i64} : tensor<9x8xf32> -> tensor<9x8xf32>
  %15 = nn.tanh %x : tensor<9x16xf32> -> tensor<9x16xf32>
  %16 = nn.add %15, %b : tensor<9x16xf32>, tensor<16xf32> -> tensor<9x16xf32>
  %17 = nn.slice %16 {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<9x16xf32> -> tensor<9x8xf32>
  %18 = nn.slice %16 {starts = array<i64: 0, 8>, steps = array<i64: 1, 1>} : tensor<9x16xf32> -> tensor<9x8xf32>
  %19 = nn.cumsum %17 {axis = 0 : i64} : tensor<9x8xf32> -> tensor<9x8xf32>
  %20 = nn.cumsum %18 {axis = 0 : i64} : tensor<9x8xf32> -> tensor<9x8xf32>
  return %3, %4, %8, %9, %13, %14, %19, %20 : tensor<16x9xf32>, tensor<9x16xf32>, tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>
}

// -----

// A padded tail of the contracted dim stays outside, since the matmul leaves it out: on both sides, transposed or not.
// CHECK-LABEL: @exact
// CHECK-COUNT-4: dist.fill_tail %arg{{[02]}} 
// CHECK-NOT: nn.fused
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor, x=2:tensor">} {
func.func @exact(%x: tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>, %w: tensor<3x7xf32>, %y: tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">>, %v: tensor<7x3xf32>) -> (tensor<4x7xf32>, tensor<4x7xf32>, tensor<7x4xf32>, tensor<7x4xf32>) {
  %0 = dist.fill_tail %x {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">> -> tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>
  %1 = nn.matmul %0, %w : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>, tensor<3x7xf32> -> tensor<4x7xf32>
  %2 = dist.fill_tail %y {dims = array<i64: 0>, value = 0.0 : f32} : tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">> -> tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">>
  %3 = nn.matmul %2, %w {transpose_lhs} : tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">>, tensor<3x7xf32> -> tensor<4x7xf32>
  %4 = dist.fill_tail %y {dims = array<i64: 0>, value = 0.0 : f32} : tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">> -> tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">>
  %5 = nn.matmul %v, %4 : tensor<7x3xf32>, tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">> -> tensor<7x4xf32>
  %6 = dist.fill_tail %x {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">> -> tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>
  %7 = nn.matmul %v, %6 {transpose_rhs} : tensor<7x3xf32>, tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">> -> tensor<7x4xf32>
  return %1, %3, %5, %7 : tensor<4x7xf32>, tensor<4x7xf32>, tensor<7x4xf32>, tensor<7x4xf32>
}

// A region fills these: a value other than 0, two padded sub-dims, two dims, a tail that another op reads, too, and dims that are not contracted. A fill without readers is erased.
// CHECK-LABEL: @filled
// CHECK: nn.fused "fill_tail_4x3_
// CHECK: nn.fused "fill_tail_4x6_
// CHECK: nn.fused "fill_tail_3x4_
// CHECK: nn.fused
// CHECK: dist.fill_tail
// CHECK: nn.fused "fill_tail_3x4_
// CHECK: nn.fused "fill_tail_4x3_
// CHECK: nn.fused "fill_tail_4x3_
// CHECK-NOT: dist.fill_tail %arg0
// CHECK: return
func.func @filled(%x: tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>, %w: tensor<3x7xf32>, %y: tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">>, %v: tensor<4x7xf32>, %two: tensor<4x6xf32, #dist.sharding<"[4, (5@tp, 3@x)]">>, %u: tensor<6x7xf32>)
    -> (tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x3xf32>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<7x3xf32>) {
  %0 = dist.fill_tail %x {dims = array<i64: 1>, value = 1.0 : f32} : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">> -> tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>
  %1 = nn.matmul %0, %w : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>, tensor<3x7xf32> -> tensor<4x7xf32>
  %2 = dist.fill_tail %two {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x6xf32, #dist.sharding<"[4, (5@tp, 3@x)]">> -> tensor<4x6xf32, #dist.sharding<"[4, (5@tp, 3@x)]">>
  %3 = nn.matmul %2, %u : tensor<4x6xf32, #dist.sharding<"[4, (5@tp, 3@x)]">>, tensor<6x7xf32> -> tensor<4x7xf32>
  %4 = dist.fill_tail %y {dims = array<i64: 0, 1>, value = 0.0 : f32} : tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">> -> tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">>
  %5 = nn.matmul %4, %w {transpose_lhs} : tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">>, tensor<3x7xf32> -> tensor<4x7xf32>
  %6 = dist.fill_tail %x {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">> -> tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>
  %7 = nn.matmul %6, %w : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>, tensor<3x7xf32> -> tensor<4x7xf32>
  %8 = nn.exp %6 : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">> -> tensor<4x3xf32>
  %9 = dist.fill_tail %y {dims = array<i64: 0>, value = 0.0 : f32} : tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">> -> tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">>
  %10 = nn.matmul %9, %v : tensor<3x4xf32, #dist.sharding<"[5@tp, 4]">>, tensor<4x7xf32> -> tensor<3x7xf32>
  %11 = dist.fill_tail %x {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">> -> tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>
  %12 = nn.matmul %11, %v {transpose_lhs} : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>, tensor<4x7xf32> -> tensor<3x7xf32>
  %13 = dist.fill_tail %x {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">> -> tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>
  %14 = nn.matmul %v, %13 {transpose_lhs} : tensor<4x7xf32>, tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">> -> tensor<7x3xf32>
  %dead = dist.fill_tail %x {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">> -> tensor<4x3xf32, #dist.sharding<"[4, 5@tp]">>
  return %1, %3, %5, %7, %8, %10, %12, %14 : tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x3xf32>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<7x3xf32>
}
}
