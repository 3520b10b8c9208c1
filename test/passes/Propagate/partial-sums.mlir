// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-verify-propagated 2>/dev/null | FileCheck %s

// A partial sum passes an op if all readers of it can take it and it does not grow. Each case differs in one condition from another one, and the answer flips.

// The sum over ranks is taken after the scale.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.mul {{.*}} -> tensor<2x6xf32, #dist.sharding<"[2, 6] partial{tp}">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x8xf32>, %k: tensor<f32>) -> tensor<2x6xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<8x6xf32>, dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xf32>
    %y = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %s = nn.mul %y, %k : tensor<2x6xf32>, tensor<f32> -> tensor<2x6xf32>
    return %s : tensor<2x6xf32>
  }
}

// -----

// The sum is taken before the scale if the value is returned, if two ops scale it, which would make two sums, or if the user wants it whole.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK-COUNT-4: nn.mul {{.*}} -> tensor<2x6xf32, #dist.sharding<"[2, 6]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x8xf32>, %k: tensor<f32>) -> (tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<8x6xf32>, dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xf32>
    %y0 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %s0 = nn.mul %y0, %k : tensor<2x6xf32>, tensor<f32> -> tensor<2x6xf32>
    %y1 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %s1 = nn.mul %y1, %k : tensor<2x6xf32>, tensor<f32> -> tensor<2x6xf32>
    %d1 = nn.mul %y1, %k : tensor<2x6xf32>, tensor<f32> -> tensor<2x6xf32>
    %y2 = nn.matmul %x, %w {dist.whole_output = array<i64: 1>, dist.whole_output_for = "w"} : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %s2 = nn.mul %y2, %k : tensor<2x6xf32>, tensor<f32> -> tensor<2x6xf32>
    return %y0, %s0, %s1, %d1, %s2 : tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>
  }
}

// -----

// A reader that could pass the sum on does not if another reader cannot: a maximum, or a sum whose columns are cut over the same axis.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK-COUNT-2: nn.reduce sum {{.*}} -> tensor<2x1xf32, #dist.sharding<"[2, 1]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x8xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<1x6xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<8x6xf32>, dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xf32>
    %y0 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %s0 = nn.reduce sum %y0 {axes = array<i64: 1>} : tensor<2x6xf32> -> tensor<2x1xf32>
    %d0 = nn.reduce max %y0 {axes = array<i64: 1>} : tensor<2x6xf32> -> tensor<2x1xf32>
    %y1 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %s1 = nn.reduce sum %y1 {axes = array<i64: 1>} : tensor<2x6xf32> -> tensor<2x1xf32>
    %d1 = nn.reduce sum %y1 {axes = array<i64: 0>, dist.seed = #dist.seed<"[1, 6@tp]">} : tensor<2x6xf32> -> tensor<1x6xf32>
    return %s0, %d0, %s1, %d1 : tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<1x6xf32>
  }
}

// -----

// The sum is taken before a matmul whose result is larger. It is taken after a concatenation of two sums, after one broadcast, and after two readers whose results together are smaller.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.matmul {{.*}} -> tensor<2x6xf32, #dist.sharding<"[2, 6] partial{tp}">>
// CHECK: nn.matmul {{.*}} -> tensor<2x64xf32, #dist.sharding<"[2, 64]">>
// CHECK: nn.concat {{.*}} -> tensor<4x6xf32, #dist.sharding<"[4, 6] partial{tp}">>
// CHECK: nn.broadcast {{.*}} -> tensor<3x2x6xf32, #dist.sharding<"[3, 2, 6] partial{tp}">>
// CHECK: nn.slice {{.*}} -> tensor<2x2xf32, #dist.sharding<"[2, 2] partial{tp}">>
// CHECK: nn.reduce {{.*}} -> tensor<2x1xf32, #dist.sharding<"[2, 1] partial{tp}">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x8xf32>, %v: tensor<6x64xf32>) -> (tensor<2x64xf32>, tensor<4x6xf32>, tensor<3x2x6xf32>, tensor<2x2xf32>, tensor<2x1xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<8x6xf32>, dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xf32>
    %y0 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %s0 = nn.matmul %y0, %v : tensor<2x6xf32>, tensor<6x64xf32> -> tensor<2x64xf32>
    %y1 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %y2 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %s1 = nn.concat %y1, %y2 {axis = 0 : i64} : tensor<2x6xf32>, tensor<2x6xf32> -> tensor<4x6xf32>
    %y3 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %s3 = nn.broadcast %y3 : tensor<2x6xf32> -> tensor<3x2x6xf32>
    %y4 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %s4 = nn.slice %y4 {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<2x6xf32> -> tensor<2x2xf32>
    %s5 = nn.reduce sum %y4 {axes = array<i64: 1>} : tensor<2x6xf32> -> tensor<2x1xf32>
    return %s0, %s1, %s3, %s4, %s5 : tensor<2x64xf32>, tensor<4x6xf32>, tensor<3x2x6xf32>, tensor<2x2xf32>, tensor<2x1xf32>
  }
}

// -----

// A sum over time passes only ops that add up terms: the select runs once a step, after the sum.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.reduce {{.*}} partial{mb}
// CHECK: nn.neg {{.*}} -> tensor<1x6xf32, #dist.sharding<"[1, 6] partial{mb}">>
// CHECK: nn.select {{.*}} -> tensor<1x6xf32, #dist.sharding<"[1, 6]">>
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data">} {
  func.func @main(%x: tensor<8x6xf32> {dist.seed = #dist.sharding<"[8@mb, 6]">}, %m: tensor<1x6xi1>) -> tensor<1x6xf32> {
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %a = nn.reduce sum %x {axes = array<i64: 0>} : tensor<8x6xf32> -> tensor<1x6xf32>
    %n = nn.neg %a : tensor<1x6xf32> -> tensor<1x6xf32>
    %s = nn.select %m, %n, %zero : tensor<1x6xi1>, tensor<1x6xf32>, tensor<f32> -> tensor<1x6xf32>
    return %s : tensor<1x6xf32>
  }
}

// -----

// Terms that are partial over data are added whole, and their reader's reduce-scatter cuts the sum; so are terms that are partial over a tensor axis, since one collective costs less than two.
// A seed on the sum itself cuts it.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.add {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6, 5] partial{dp}">>
// CHECK: nn.tanh {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6@dp, 5]">>
// CHECK: nn.add {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6, 5] partial{tp}">>
// CHECK: nn.tanh {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6@tp, 5]">>
// CHECK: nn.add {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6@dp, 5]">>
module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=2:tensor">} {
  func.func @main(%x: tensor<8x6xf32> {dist.seed = #dist.seed<"[8@dp, 6]">}, %z: tensor<8x5xf32> {dist.seed = #dist.seed<"[8@dp, 5]">}, %u: tensor<8x6xf32> {dist.seed = #dist.seed<"[8@tp, 6]">}, %v: tensor<8x5xf32> {dist.seed = #dist.seed<"[8@tp, 5]">})
      -> (tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>) {
    %a0 = nn.matmul %x, %z {transpose_lhs} : tensor<8x6xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
    %b0 = nn.matmul %x, %z {transpose_lhs} : tensor<8x6xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
    %s0 = nn.add %a0, %b0 : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    %t0 = nn.tanh %s0 {dist.seed = #dist.sharding<"[6@dp, 5]">} : tensor<6x5xf32> -> tensor<6x5xf32>
    %a1 = nn.matmul %u, %v {transpose_lhs} : tensor<8x6xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
    %b1 = nn.matmul %u, %v {transpose_lhs} : tensor<8x6xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
    %s1 = nn.add %a1, %b1 : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    %t1 = nn.tanh %s1 {dist.seed = #dist.sharding<"[6@tp, 5]">} : tensor<6x5xf32> -> tensor<6x5xf32>
    %a2 = nn.matmul %x, %z {transpose_lhs} : tensor<8x6xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
    %b2 = nn.matmul %x, %z {transpose_lhs} : tensor<8x6xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
    %s2 = nn.add %a2, %b2 {dist.seed = #dist.sharding<"[6@dp, 5]">} : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    return %t0, %t1, %s2 : tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>
  }
}

// -----

// One term has another reader and is summed for it; then the add is cut as its reader is.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.exp
// CHECK-NEXT: nn.add {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6@dp, 5]">>
module attributes {dist.mesh = #dist.mesh<"dp=2:data">} {
  func.func @main(%x: tensor<8x6xf32> {dist.seed = #dist.seed<"[8@dp, 6]">}, %z: tensor<8x5xf32> {dist.seed = #dist.seed<"[8@dp, 5]">}) -> (tensor<6x5xf32>, tensor<6x5xf32>) {
    %a = nn.matmul %x, %z {transpose_lhs} : tensor<8x6xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
    %b = nn.matmul %x, %z {transpose_lhs} : tensor<8x6xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
    %e = nn.exp %a : tensor<6x5xf32> -> tensor<6x5xf32>
    %s = nn.add %a, %b : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    %t = nn.tanh %s {dist.seed = #dist.sharding<"[6@dp, 5]">} : tensor<6x5xf32> -> tensor<6x5xf32>
    return %e, %t : tensor<6x5xf32>, tensor<6x5xf32>
  }
}

// -----

// The sum is taken after a division by constants, and before one by constants of which one is 0 or by what the program computes, since infinities of both signs add up to NaN.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK-COUNT-2: nn.div {{.*}} -> tensor<2x6xf32, #dist.sharding<"[2, 6] partial{tp}">>
// CHECK-COUNT-3: nn.div {{.*}} -> tensor<2x6xf32, #dist.sharding<"[2, 6]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x8xf32>, %d: tensor<f32>) -> (tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<8x6xf32>, dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xf32>
    %eight = nn.constant dense<8.0> : tensor<f32> : tensor<f32>
    %some = nn.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]> : tensor<1x6xf32> : tensor<1x6xf32>
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %one = nn.constant dense<[[1.0, 2.0, -0.0, 4.0, 5.0, 6.0]]> : tensor<1x6xf32> : tensor<1x6xf32>
    %y0 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %q0 = nn.div %y0, %eight : tensor<2x6xf32>, tensor<f32> -> tensor<2x6xf32>
    %y1 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %q1 = nn.div %y1, %some : tensor<2x6xf32>, tensor<1x6xf32> -> tensor<2x6xf32>
    %y2 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %q2 = nn.div %y2, %zero : tensor<2x6xf32>, tensor<f32> -> tensor<2x6xf32>
    %y3 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %q3 = nn.div %y3, %one : tensor<2x6xf32>, tensor<1x6xf32> -> tensor<2x6xf32>
    %y4 = nn.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %q4 = nn.div %y4, %d : tensor<2x6xf32>, tensor<f32> -> tensor<2x6xf32>
    return %q0, %q1, %q2, %q3, %q4 : tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>
  }
}
