// RUN: hpc-opt %s --hpc-decompose-composites --hpc-fuse-regions | FileCheck %s

module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {

// Bias, residual and layer norm are one kernel; the sum that later readers want is its second result. Two that differ in marks alone share a symbol.
// CHECK-LABEL: @residual
// CHECK: %[[A:.*]]:2 = nn.fused "layer_norm_2x9x16_0"(%arg0, %arg1, %arg2)
// CHECK: nn.yield %{{.*}}, %{{.*}} : tensor<2x9x16xf32>, tensor<2x9x16xf32>
// CHECK: %[[M:.*]] = nn.matmul %[[A]]#1
// CHECK-NEXT: %[[B:.*]]:2 = nn.fused "layer_norm_2x9x16_0"(%[[M]], %arg1, %[[A]]#0)
// CHECK: return %[[B]]#0, %[[B]]#1
func.func @residual(%x: tensor<2x9x16xf32>, %b: tensor<16xf32>, %res: tensor<2x9x16xf32>, %w: tensor<16x16xf32>) -> (tensor<2x9x16xf32>, tensor<2x9x16xf32>) {
  %0 = nn.add %x, %b {hpc.id = 1 : i64} : tensor<2x9x16xf32>, tensor<16xf32> -> tensor<2x9x16xf32>
  %1 = nn.add %0, %res : tensor<2x9x16xf32>, tensor<2x9x16xf32> -> tensor<2x9x16xf32>
  %2 = nn.layer_norm %1 weight %b : tensor<16xf32> {epsilon = 1.0e-5 : f64} : tensor<2x9x16xf32> -> tensor<2x9x16xf32>
  %3 = nn.matmul %2, %w : tensor<2x9x16xf32>, tensor<16x16xf32> -> tensor<2x9x16xf32>
  %4 = nn.add %3, %b {hpc.id = 2 : i64} : tensor<2x9x16xf32>, tensor<16xf32> -> tensor<2x9x16xf32>
  %5 = nn.add %4, %1 : tensor<2x9x16xf32>, tensor<2x9x16xf32> -> tensor<2x9x16xf32>
  %6 = nn.layer_norm %5 weight %b : tensor<16xf32> {epsilon = 1.0e-5 : f64} : tensor<2x9x16xf32> -> tensor<2x9x16xf32>
  return %5, %6 : tensor<2x9x16xf32>, tensor<2x9x16xf32>
}

// Scale, causal mask and softmax between two matmuls: one kernel, iotas inside.
// CHECK-LABEL: @attention
// CHECK: %[[S:.*]] = nn.matmul
// CHECK-NEXT: %[[P:.*]] = nn.fused "softmax_1x2x5x5_0"(%[[S]])
// CHECK: nn.mul
// CHECK-COUNT-2: nn.iota
// CHECK: nn.select
// CHECK: nn.softmax
// CHECK: nn.matmul %[[P]], %arg2
func.func @attention(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32> {
  %scale = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
  %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
  %rows = nn.iota {dim = 0 : i64} : tensor<5x1xi64>
  %columns = nn.iota {dim = 1 : i64} : tensor<1x5xi64>
  %visible = nn.compare ge %rows, %columns : tensor<5x1xi64>, tensor<1x5xi64> -> tensor<5x5xi1>
  %0 = nn.matmul %q, %k {transpose_rhs} : tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x5x5xf32>
  %1 = nn.mul %0, %scale : tensor<1x2x5x5xf32>, tensor<f32> -> tensor<1x2x5x5xf32>
  %2 = nn.select %visible, %1, %low : tensor<5x5xi1>, tensor<1x2x5x5xf32>, tensor<f32> -> tensor<1x2x5x5xf32>
  %3 = nn.softmax %2 : tensor<1x2x5x5xf32> -> tensor<1x2x5x5xf32>
  %4 = nn.matmul %3, %v : tensor<1x2x5x5xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x5x4xf32>
  return %4 : tensor<1x2x5x4xf32>
}

// What stands round a softmax joins it, before and behind: bias and a residual norm, NaN of rows that see nothing. A transpose does not, it would
// read rows that are not known yet.
// CHECK-LABEL: @around
// CHECK-NEXT: %[[S:.*]]:2 = nn.fused "softmax_2x9x16_0"(%arg0, %arg1)
// CHECK: nn.layer_norm
// CHECK: nn.softmax
// CHECK: nn.is_nan
// CHECK: nn.yield %{{.*}}, %{{.*}} : tensor<2x9x16xf32>, tensor<2x9x16xf32>
// CHECK: nn.fused "transpose_2x16x9_0"(%[[S]]#1)
func.func @around(%x: tensor<2x9x16xf32>, %b: tensor<16xf32>) -> (tensor<2x9x16xf32>, tensor<2x16x9xf32>) {
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %0 = nn.add %x, %b : tensor<2x9x16xf32>, tensor<16xf32> -> tensor<2x9x16xf32>
  %1 = nn.layer_norm %0 weight %b : tensor<16xf32> {epsilon = 1.0e-5 : f64} : tensor<2x9x16xf32> -> tensor<2x9x16xf32>
  %2 = nn.add %0, %1 : tensor<2x9x16xf32>, tensor<2x9x16xf32> -> tensor<2x9x16xf32>
  %3 = nn.softmax %2 : tensor<2x9x16xf32> -> tensor<2x9x16xf32>
  %4 = nn.is_nan %3 : tensor<2x9x16xf32> -> tensor<2x9x16xi1>
  %5 = nn.select %4, %zero, %3 : tensor<2x9x16xi1>, tensor<f32>, tensor<2x9x16xf32> -> tensor<2x9x16xf32>
  %6 = nn.transpose %5 {permutation = array<i64: 0, 2, 1>} : tensor<2x9x16xf32> -> tensor<2x16x9xf32>
  return %2, %6 : tensor<2x9x16xf32>, tensor<2x16x9xf32>
}

// The bias of a fused q, k is added in each part, which is copied once, heads in front; reshapes of buffers are aliases.
// CHECK-LABEL: @heads
// CHECK: %[[R:.*]] = nn.reshape %arg0 : tensor<10x16xf32> -> tensor<2x5x16xf32>
// CHECK: %[[Q:.*]] = nn.fused "transpose_2x2x5x4_0"(%[[R]], %arg1)
// CHECK: nn.add
// CHECK: %[[K:.*]] = nn.fused "transpose_2x2x5x4_1"(%[[R]], %arg1)
// CHECK: nn.add
// CHECK: nn.matmul %[[Q]], %[[K]]
func.func @heads(%x: tensor<10x16xf32>, %b: tensor<16xf32>) -> tensor<2x2x5x5xf32> {
  %0 = nn.reshape %x : tensor<10x16xf32> -> tensor<2x5x16xf32>
  %1 = nn.add %0, %b : tensor<2x5x16xf32>, tensor<16xf32> -> tensor<2x5x16xf32>
  %q0 = nn.slice %1 {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x5x16xf32> -> tensor<2x5x8xf32>
  %k0 = nn.slice %1 {starts = array<i64: 0, 0, 8>, steps = array<i64: 1, 1, 1>} : tensor<2x5x16xf32> -> tensor<2x5x8xf32>
  %q1 = nn.reshape %q0 : tensor<2x5x8xf32> -> tensor<2x5x2x4xf32>
  %k1 = nn.reshape %k0 : tensor<2x5x8xf32> -> tensor<2x5x2x4xf32>
  %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x2x4xf32> -> tensor<2x2x5x4xf32>
  %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x2x4xf32> -> tensor<2x2x5x4xf32>
  %r = nn.matmul %q, %k {transpose_rhs} : tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32> -> tensor<2x2x5x5xf32>
  return %r : tensor<2x2x5x5xf32>
}

// A buffer times a number is computed by each of its readers: no pass writes it for them, and the one that does so for the
// output is read by no other, so that it can be left out.
// CHECK-LABEL: @scaled
// CHECK: %[[P:.*]] = nn.matmul
// CHECK: %[[M:.*]] = nn.fused "mul_9x16_0"(%[[P]], %arg2)
// CHECK: %[[R:.*]] = nn.fused "reduce_9x1_0"(%[[P]], %arg2)
// CHECK: %[[U:.*]] = nn.fused "mul_9x16_{{[0-9]+}}"(%arg3, %[[P]], %arg2,
// CHECK: return %[[M]], %[[R]], %[[U]]
func.func @scaled(%x: tensor<9x4xf32>, %y: tensor<4x16xf32>, %f: tensor<f32>, %w: tensor<9x16xf32>) -> (tensor<9x16xf32>, tensor<9x1xf32>, tensor<9x16xf32>) {
  %0 = nn.matmul %x, %y : tensor<9x4xf32>, tensor<4x16xf32> -> tensor<9x16xf32>
  %1 = nn.mul %0, %f : tensor<9x16xf32>, tensor<f32> -> tensor<9x16xf32>
  %2 = nn.reduce sum %1 {axes = array<i64: 1>} : tensor<9x16xf32> -> tensor<9x1xf32>
  %3 = nn.matmul %2, %2 {transpose_rhs} : tensor<9x1xf32>, tensor<9x1xf32> -> tensor<9x9xf32>
  %4 = nn.reduce sum %3 {axes = array<i64: 0, 1>} : tensor<9x9xf32> -> tensor<1x1xf32>
  %5 = nn.reshape %4 : tensor<1x1xf32> -> tensor<f32>
  %6 = nn.sub %w, %1 : tensor<9x16xf32>, tensor<9x16xf32> -> tensor<9x16xf32>
  %7 = nn.mul %6, %5 : tensor<9x16xf32>, tensor<f32> -> tensor<9x16xf32>
  return %1, %2, %7 : tensor<9x16xf32>, tensor<9x1xf32>, tensor<9x16xf32>
}

// An exponential is not done again for every row that reads it, a sum for no element twice: two kernels each.
// CHECK-LABEL: @expensive
// CHECK: %[[E:.*]] = nn.fused "exp_16_0"(%arg1)
// CHECK: nn.fused "add_9x16_0"(%arg0, %[[E]])
// CHECK: %[[S:.*]] = nn.fused "reduce_1x16_0"(%arg0)
// CHECK: nn.fused "mul_9x16_{{[0-9]+}}"(%arg0, %[[S]])
func.func @expensive(%x: tensor<9x16xf32>, %v: tensor<16xf32>) -> (tensor<9x16xf32>, tensor<9x16xf32>) {
  %0 = nn.exp %v : tensor<16xf32> -> tensor<16xf32>
  %1 = nn.add %x, %0 : tensor<9x16xf32>, tensor<16xf32> -> tensor<9x16xf32>
  %2 = nn.reduce sum %x {axes = array<i64: 0>} : tensor<9x16xf32> -> tensor<1x16xf32>
  %3 = nn.mul %x, %2 : tensor<9x16xf32>, tensor<1x16xf32> -> tensor<9x16xf32>
  return %1, %3 : tensor<9x16xf32>, tensor<9x16xf32>
}

// Fusing both ends of a path through a matmul would make a cycle.
// CHECK-LABEL: @cycle
// CHECK: nn.fused "exp
// CHECK: nn.matmul
// CHECK: nn.fused "add
func.func @cycle(%x: tensor<9x9xf32>) -> tensor<9x9xf32> {
  %0 = nn.exp %x : tensor<9x9xf32> -> tensor<9x9xf32>
  %1 = nn.matmul %0, %x : tensor<9x9xf32>, tensor<9x9xf32> -> tensor<9x9xf32>
  %2 = nn.add %1, %0 : tensor<9x9xf32>, tensor<9x9xf32> -> tensor<9x9xf32>
  return %2 : tensor<9x9xf32>
}

// A contiguous tail that only a matmul contracts stays outside: lower leaves the tail out. The padded digit of (3, 5@tp, 2) is no tail.
// CHECK-LABEL: @tails
// CHECK: %[[F:.*]] = dist.fill_tail %arg0
// CHECK: nn.matmul %[[F]]
// CHECK: %[[G:.*]] = nn.fused "fill_tail_4x18_0"(%arg2)
// CHECK: nn.matmul %[[G]]
func.func @tails(%x: tensor<4x24xf32, #dist.sharding<"[4, (5@tp, 8)]">>, %w: tensor<24x7xf32>, %y: tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">>,
                 %v: tensor<18x7xf32>) -> (tensor<4x7xf32>, tensor<4x7xf32>) {
  %0 = dist.fill_tail %x {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x24xf32, #dist.sharding<"[4, (5@tp, 8)]">> -> tensor<4x24xf32, #dist.sharding<"[4, (5@tp, 8)]">>
  %1 = nn.matmul %0, %w : tensor<4x24xf32, #dist.sharding<"[4, (5@tp, 8)]">>, tensor<24x7xf32> -> tensor<4x7xf32>
  %2 = dist.fill_tail %y {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">> -> tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">>
  %3 = nn.matmul %2, %v : tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">>, tensor<18x7xf32> -> tensor<4x7xf32>
  return %1, %3 : tensor<4x7xf32>, tensor<4x7xf32>
}

// Ranks read the ids of their own rows: offsets go inside the region, no buffer holds them.
// CHECK-LABEL: @offset
// CHECK: nn.fused "embedding_2x4_0"(%arg0, %arg1)
// CHECK: dist.offset
// CHECK-NOT: dist.offset
func.func @offset(%t: tensor<252x4xf32>, %i: tensor<2xi64>) -> tensor<2x4xf32> {
  %o = dist.offset {dim = #dist.sharding<"[503@tp]">} : tensor<i64>
  %r = nn.embedding %t, %i offset %o : tensor<i64> {vocabulary = 503 : i64} : tensor<252x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
}

// -----

// A value that reductions and a product read, both through two reshapes. Were the product behind the second one overlooked, the gelu would be pulled into the reduction's region, no result of it, and
// left outside every region for the product.
// CHECK-LABEL: func.func @through_two_reshapes
// CHECK-NEXT: %[[R:.*]] = nn.fused
// CHECK: %[[FLAT:.*]] = nn.reshape %[[R]] :
// CHECK: %[[BACK:.*]] = nn.reshape %[[FLAT]]
// CHECK: nn.matmul %[[BACK]]
func.func @through_two_reshapes(%x: tensor<1x32x64xf32>, %w: tensor<64x8xf32>) -> (tensor<1x32x1xf32>, tensor<1x32x8xf32>) {
  %0 = nn.gelu %x : tensor<1x32x64xf32> -> tensor<1x32x64xf32>
  %1 = nn.reshape %0 : tensor<1x32x64xf32> -> tensor<32x64xf32>
  %2 = nn.reshape %1 : tensor<32x64xf32> -> tensor<1x32x64xf32>
  %3 = nn.abs %2 : tensor<1x32x64xf32> -> tensor<1x32x64xf32>
  %4 = nn.reduce max %3 {axes = array<i64: 2>} : tensor<1x32x64xf32> -> tensor<1x32x1xf32>
  %5 = nn.matmul %2, %w : tensor<1x32x64xf32>, tensor<64x8xf32> -> tensor<1x32x8xf32>
  return %4, %5 : tensor<1x32x1xf32>, tensor<1x32x8xf32>
}

// -----

// What a norm's gradient is made of: sums of blocks of rows are results beside the rows, those of an operand that it reads too
// (%g, whose sum stands before everything else) and those of what it alone knows.
// CHECK-LABEL: func.func @rows_and_their_sums
// CHECK: %[[R:.*]]:3 = nn.fused {{.*}}(%arg1, %arg0) : (tensor<64x768xf32>, tensor<64x768xf32>) -> (tensor<8x1x768xf32>, tensor<64x768xf32>, tensor<8x1x768xf32>)
// CHECK-NOT: nn.fused
// CHECK: return %[[R]]#0, %[[R]]#2, %[[R]]#1
func.func @rows_and_their_sums(%x: tensor<64x768xf32>, %g: tensor<64x768xf32>) -> (tensor<8x1x768xf32>, tensor<8x1x768xf32>, tensor<64x768xf32>) {
  %0 = nn.reshape %g : tensor<64x768xf32> -> tensor<8x8x768xf32>
  %1 = nn.reduce sum %0 {axes = array<i64: 1>} : tensor<8x8x768xf32> -> tensor<8x1x768xf32>
  %2 = nn.reduce sum %x {axes = array<i64: 1>} : tensor<64x768xf32> -> tensor<64x1xf32>
  %3 = nn.mul %g, %2 : tensor<64x768xf32>, tensor<64x1xf32> -> tensor<64x768xf32>
  %4 = nn.reshape %3 : tensor<64x768xf32> -> tensor<8x8x768xf32>
  %5 = nn.reduce sum %4 {axes = array<i64: 1>} : tensor<8x8x768xf32> -> tensor<8x1x768xf32>
  return %1, %5, %3 : tensor<8x1x768xf32>, tensor<8x1x768xf32>, tensor<64x768xf32>
}

// Four blocks would be the work of four threads, and rows that wait for the sum cannot be in its loop.
// CHECK-LABEL: func.func @rows_apart_from_their_sums
// CHECK: nn.fused "reduce_4x1x768_0"
// CHECK: nn.fused "mul_64x768
// CHECK: %[[S:.*]] = nn.fused "reduce_8x1x768_{{[0-9]+}}"(%arg1)
// CHECK: nn.fused "sub_8x8x768_0"(%{{.*}}, %[[S]])
func.func @rows_apart_from_their_sums(%x: tensor<64x768xf32>, %y: tensor<8x8x768xf32>) -> (tensor<4x1x768xf32>, tensor<64x768xf32>, tensor<8x8x768xf32>) {
  %0 = nn.reshape %x : tensor<64x768xf32> -> tensor<4x16x768xf32>
  %1 = nn.reduce sum %0 {axes = array<i64: 1>} : tensor<4x16x768xf32> -> tensor<4x1x768xf32>
  %2 = nn.mul %x, %x : tensor<64x768xf32>, tensor<64x768xf32> -> tensor<64x768xf32>
  %3 = nn.reduce sum %y {axes = array<i64: 1>} : tensor<8x8x768xf32> -> tensor<8x1x768xf32>
  %4 = nn.sub %y, %3 : tensor<8x8x768xf32>, tensor<8x1x768xf32> -> tensor<8x8x768xf32>
  return %1, %2, %4 : tensor<4x1x768xf32>, tensor<64x768xf32>, tensor<8x8x768xf32>
}
