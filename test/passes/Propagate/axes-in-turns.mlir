// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-verify-propagated 2>/dev/null | FileCheck %s

// A product whose columns are cut over an axis of its rows takes the rows of the axes outside of that one; where the axis is the outermost, it takes no rows.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.matmul {{.*}}dist.factors = #dist.sharding<"[8@dp, 6, 4@tp]">
// CHECK: nn.matmul {{.*}}dist.factors = #dist.sharding<"[8, 6, 4@tp]">
module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=2:tensor">} {
  func.func @main(%x: tensor<8x6xf32> {dist.seed = #dist.sharding<"[8@(dp, tp), 6]">}, %z: tensor<8x6xf32> {dist.seed = #dist.sharding<"[8@(tp, dp), 6]">}) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x4xf32>, dist.seed = #dist.sharding<"[6, 4@tp]">} : tensor<6x4xf32>
    %y = nn.matmul %x, %w : tensor<8x6xf32>, tensor<6x4xf32> -> tensor<8x4xf32>
    %v = nn.matmul %z, %w : tensor<8x6xf32>, tensor<6x4xf32> -> tensor<8x4xf32>
    return %y, %v : tensor<8x4xf32>, tensor<8x4xf32>
  }
}

// -----

// A gradient of a weight has the weight's cut: what is summed, the rows of the larger operand, yields to the columns of the smaller one.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.matmul {{.*}}dist.factors = #dist.sharding<"[8@dp, 16, 4@tp]">
module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=2:tensor">} {
  func.func @main(%x: tensor<8x16xf32> {dist.seed = #dist.sharding<"[8@(dp, tp), 16]">}, %dy: tensor<8x4xf32> {dist.seed = #dist.sharding<"[8@dp, 4@tp]">}) -> tensor<16x4xf32> {
    %dw = nn.matmul %x, %dy {transpose_lhs} : tensor<8x16xf32>, tensor<8x4xf32> -> tensor<16x4xf32>
    return %dw : tensor<16x4xf32>
  }
}

// -----

// A weight is stored in pieces of the part that its columns are: the update and what else reads the gradient (its norm) have these pieces, by one reduce-scatter; the
// product, which a seed cuts, keeps its part.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.matmul {{.*}} -> tensor<8x4xf32, #dist.sharding<"[8@tp, 4] partial{dp}">>
// CHECK: nn.mul {{.*}} -> tensor<8x4xf32, #dist.sharding<"[8@(tp, dp), 4]">>
// CHECK: nn.mul {{.*}} -> tensor<8x4xf32, #dist.sharding<"[8@(tp, dp), 4]">>
// CHECK: nn.reduce {{.*}} -> tensor<1x1xf32, #dist.sharding<"[1, 1] partial{dp, tp}">>
// CHECK: nn.sub {{.*}} -> tensor<8x4xf32, #dist.sharding<"[8@(tp, dp), 4]">>
module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=2:tensor">} {
  func.func @main(%x: tensor<6x8xf32> {dist.seed = #dist.sharding<"[6@dp, 8@tp]">}, %dy: tensor<6x4xf32> {dist.seed = #dist.sharding<"[6@dp, 4]">}, %lr: tensor<f32>)
      -> (tensor<1x1xf32>, tensor<8x4xf32> {nn.writes = "w"}) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<8x4xf32>, dist.seed = #dist.sharding<"[8@(tp, dp), 4]">} : tensor<8x4xf32>
    %dw = nn.matmul %x, %dy {transpose_lhs, dist.seed = #dist.sharding<"[8@tp, 4]">} : tensor<6x8xf32>, tensor<6x4xf32> -> tensor<8x4xf32>
    %step = nn.mul %dw, %lr : tensor<8x4xf32>, tensor<f32> -> tensor<8x4xf32>
    %square = nn.mul %step, %step : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
    %norm = nn.reduce sum %square {axes = array<i64: 0, 1>} : tensor<8x4xf32> -> tensor<1x1xf32>
    %new = nn.sub %w, %step : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
    return %norm, %new : tensor<1x1xf32>, tensor<8x4xf32>
  }
}

// -----

// Operands whose rows are cut over the axes of each other's columns share the rows of the axis outside of both; the gradient's pieces over this axis are of the sum.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.matmul {{.*}}dist.factors = #dist.sharding<"[8@dp, 4@z, 6@y]">{{.*}} -> tensor<4x6xf32, #dist.sharding<"[4@z, 6@y] partial{dp}">>
// CHECK: nn.sub {{.*}} -> tensor<4x6xf32, #dist.sharding<"[4@(z, dp), 6@y]">>
module attributes {dist.mesh = #dist.mesh<"dp=2:data, y=2:tensor, z=2:tensor">} {
  func.func @main(%x: tensor<8x4xf32> {dist.seed = #dist.sharding<"[8@(dp, y), 4@z]">}, %dy: tensor<8x6xf32> {dist.seed = #dist.sharding<"[8@(dp, z), 6@y]">})
      -> (tensor<4x6xf32> {nn.writes = "w"}) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<4x6xf32>, dist.seed = #dist.sharding<"[4@(z, dp), 6@y]">} : tensor<4x6xf32>
    %dw = nn.matmul %x, %dy {transpose_lhs} : tensor<8x4xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
    %new = nn.sub %w, %dw : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
    return %new : tensor<4x6xf32>
  }
}
