// RUN: hpc-opt %s --split-input-file --hpc-panel-products | FileCheck %s

// Cannon's skew: both panels of a step come from the ranks that the coordinates along both axes name, and the next ones are asked for before
// they are needed. Seven rows over three ranks: a product takes as many as the panel has.
// CHECK-LABEL: @square
// CHECK-SAME: (%[[A:arg0]]: {{.*}}, %[[B:arg1]]:
// CHECK-NEXT: %[[A0:.*]] = dist.raw_permute %[[A]] {axis = "y", cause = "c, in panels", shift = 0 : i64, skew = "x"}
// CHECK-NEXT: %[[B0:.*]] = dist.raw_permute %[[B]] {axis = "x", shift = 0 : i64, skew = "y"}
// CHECK-NEXT: %[[A1:.*]] = dist.raw_permute %[[A]] {axis = "y", cause = "c, in panels", shift = 1 : i64, skew = "x"}
// CHECK-NEXT: %[[B1:.*]] = dist.raw_permute %[[B]] {axis = "x", shift = 1 : i64, skew = "y"}
// CHECK-NEXT: %[[X0:.*]] = dist.raw_block %[[A0]] {cut = #dist.sharding<"[7@y]">, dim = 2 : i64, shift = 0 : i64, skew = "x"}
// CHECK-NEXT: %[[W0:.*]] = dist.raw_block %[[B0]] {cut = #dist.sharding<"[7@x]">, dim = 0 : i64, shift = 0 : i64, skew = "y"}
// CHECK-NEXT: %[[C0:.*]] = nn.matmul %[[X0]], %[[W0]] : tensor<2x1x3xf32>, tensor<3x2xf32> -> tensor<2x1x2xf32,
// CHECK-NEXT: dist.raw_permute %[[A]] {{.*}}shift = 2 : i64
// CHECK-NEXT: dist.raw_permute %[[B]] {{.*}}shift = 2 : i64
// CHECK: %[[P1:.*]] = nn.matmul
// CHECK-NEXT: %[[C1:.*]] = nn.add %[[C0]], %[[P1]] {hpc.adds_in_product}
// CHECK: %[[P2:.*]] = nn.matmul
// CHECK-NEXT: %[[C2:.*]] = nn.add %[[C1]], %[[P2]] {hpc.adds_in_product, hpc.id = 3 : i64}
// CHECK-NEXT: return %[[C2]]
module attributes {dist.mesh = #dist.mesh<"x=3:data, y=3:tensor">} {
func.func @square(%x: tensor<2x1x3xf32, #dist.sharding<"[6@x, 1, 7@y]">>, %w: tensor<3x2xf32, #dist.sharding<"[7@x, 6@y]">>) -> tensor<2x1x2xf32, #dist.sharding<"[6@x, 1, 6@y]">> {
  %0 = dist.all_gather %x {axis = "y", from_dim = 2 : i64, from_sub = 0 : i64, cause = "c", before = #dist.sharding<"[6@x, 1, 7@y]">,
    after = #dist.sharding<"[6@x, 1, 7]">} : tensor<2x1x3xf32, #dist.sharding<"[6@x, 1, 7@y]">> -> tensor<2x1x7xf32, #dist.sharding<"[6@x, 1, 7]">>
  %1 = dist.all_gather %w {axis = "x", from_dim = 0 : i64, from_sub = 0 : i64, before = #dist.sharding<"[7@x, 6@y]">,
    after = #dist.sharding<"[7, 6@y]">} : tensor<3x2xf32, #dist.sharding<"[7@x, 6@y]">> -> tensor<7x2xf32, #dist.sharding<"[7, 6@y]">>
  %2 = nn.matmul %0, %1 {hpc.id = 3 : i64} : tensor<2x1x7xf32, #dist.sharding<"[6@x, 1, 7]">>, tensor<7x2xf32, #dist.sharding<"[7, 6@y]">> -> tensor<2x1x2xf32, #dist.sharding<"[6@x, 1, 6@y]">>
  return %2 : tensor<2x1x2xf32, #dist.sharding<"[6@x, 1, 6@y]">>
}
}

// -----

// Pieces that do not meet: the larger operand comes in panels, its own first, and the other is read where the panel's rows lie.
// A sum in bf16 is one of f32, rounded at the end.
// CHECK-LABEL: @oblong
// CHECK-SAME: (%[[A:arg0]]: {{.*}}, %[[B:arg1]]:
// CHECK: %[[W:.*]] = dist.all_gather %[[B]]
// CHECK-NEXT: %[[A1:.*]] = dist.raw_permute %[[A]] {axis = "y", shift = 1 : i64} :
// CHECK-NEXT: %[[W0:.*]] = dist.raw_block %[[W]] {cut = #dist.sharding<"[6@y]">, dim = 0 : i64, shift = 0 : i64} : tensor<6x2xbf16, {{.*}}> -> tensor<2x2xbf16
// CHECK-NEXT: %[[C0:.*]] = nn.matmul %[[A]], %[[W0]] : {{.*}} -> tensor<9x2xf32
// CHECK: dist.raw_permute %[[A]] {axis = "y", shift = 2 : i64} :
// CHECK: dist.raw_block %[[W]] {{.*}}shift = 2 : i64
// CHECK: %[[C2:.*]] = nn.add {{.*}}adds_in_product
// CHECK-NEXT: %[[R:.*]] = nn.cast %[[C2]] : tensor<9x2xf32{{.*}}> -> tensor<9x2xbf16
// CHECK-NEXT: return %[[R]]
module attributes {dist.mesh = #dist.mesh<"x=2:data, y=3:tensor">} {
func.func @oblong(%x: tensor<9x2xbf16, #dist.sharding<"[18@x, 6@y]">>, %w: tensor<3x2xbf16, #dist.sharding<"[6@x, 6@y]">>) -> tensor<9x2xbf16, #dist.sharding<"[18@x, 6@y]">> {
  %0 = dist.all_gather %x {axis = "y", from_dim = 1 : i64, from_sub = 0 : i64, before = #dist.sharding<"[18@x, 6@y]">,
    after = #dist.sharding<"[18@x, 6]">} : tensor<9x2xbf16, #dist.sharding<"[18@x, 6@y]">> -> tensor<9x6xbf16, #dist.sharding<"[18@x, 6]">>
  %1 = dist.all_gather %w {axis = "x", from_dim = 0 : i64, from_sub = 0 : i64, before = #dist.sharding<"[6@x, 6@y]">,
    after = #dist.sharding<"[6, 6@y]">} : tensor<3x2xbf16, #dist.sharding<"[6@x, 6@y]">> -> tensor<6x2xbf16, #dist.sharding<"[6, 6@y]">>
  %2 = nn.matmul %0, %1 : tensor<9x6xbf16, #dist.sharding<"[18@x, 6]">>, tensor<6x2xbf16, #dist.sharding<"[6, 6@y]">> -> tensor<9x2xbf16, #dist.sharding<"[18@x, 6@y]">>
  return %2 : tensor<9x2xbf16, #dist.sharding<"[18@x, 6@y]">>
}
}

// -----

// Backward: a panel of the weight gives a panel of the result, which goes to its owner; what arrives is added behind the next product.
// The tail of what is summed is filled before the panel leaves.
// CHECK-LABEL: @scattered
// CHECK-SAME: (%[[Y:arg0]]: {{.*}}, %[[B:arg1]]:
// CHECK: %[[F:.*]] = dist.fill_tail %[[Y]]
// CHECK-NEXT: %[[T:.*]] = dist.fill_tail %[[B]] {dims = array<i64: 1>
// CHECK-NEXT: %[[B0:.*]] = dist.raw_permute %[[T]] {axis = "x", shift = 0 : i64, skew = "y"}
// CHECK-NEXT: %[[B1:.*]] = dist.raw_permute %[[T]] {axis = "x", shift = 1 : i64, skew = "y"}
// CHECK-NEXT: %[[P0:.*]] = nn.matmul %[[F]], %[[B0]] {transpose_rhs} : {{.*}} -> tensor<4x2xf32>
// CHECK-NEXT: %[[R0:.*]] = dist.raw_permute %[[P0]] {against, axis = "y", shift = 0 : i64, skew = "x"}
// CHECK-NEXT: %[[P1:.*]] = nn.matmul %[[F]], %[[B1]]
// CHECK-NEXT: %[[R1:.*]] = dist.raw_permute %[[P1]] {against, axis = "y", shift = -1 : i64, skew = "x"}
// CHECK-NEXT: %[[S:.*]] = nn.add %[[R0]], %[[R1]] {hpc.id_of = 5 : i64}
// CHECK-NEXT: return %[[S]]
module attributes {dist.mesh = #dist.mesh<"x=2:data, y=2:tensor">} {
func.func @scattered(%y: tensor<4x3xf32, #dist.sharding<"[8@x, 5@y]">>, %w: tensor<2x3xf32, #dist.sharding<"[4@x, 5@y]">>) -> tensor<4x2xf32, #dist.sharding<"[8@x, 4@y]">> {
  %f = dist.fill_tail %y {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x3xf32, #dist.sharding<"[8@x, 5@y]">> -> tensor<4x3xf32, #dist.sharding<"[8@x, 5@y]">>
  %0 = dist.all_gather %w {axis = "x", from_dim = 0 : i64, from_sub = 0 : i64, before = #dist.sharding<"[4@x, 5@y]">,
    after = #dist.sharding<"[4, 5@y]">} : tensor<2x3xf32, #dist.sharding<"[4@x, 5@y]">> -> tensor<4x3xf32, #dist.sharding<"[4, 5@y]">>
  %g = dist.fill_tail %0 {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x3xf32, #dist.sharding<"[4, 5@y]">> -> tensor<4x3xf32, #dist.sharding<"[4, 5@y]">>
  %1 = nn.matmul %f, %g {transpose_rhs} : tensor<4x3xf32, #dist.sharding<"[8@x, 5@y]">>, tensor<4x3xf32, #dist.sharding<"[4, 5@y]">> -> tensor<4x4xf32, #dist.sharding<"[8@x, 4] partial{y}">>
  %2 = dist.reduce_scatter %1 {axis = "y", to_dim = 1 : i64, to_sub = 0 : i64, hpc.id_of = 5 : i64, before = #dist.sharding<"[8@x, 4] partial{y}">,
    after = #dist.sharding<"[8@x, 4@y]">} : tensor<4x4xf32, #dist.sharding<"[8@x, 4] partial{y}">> -> tensor<4x2xf32, #dist.sharding<"[8@x, 4@y]">>
  return %2 : tensor<4x2xf32, #dist.sharding<"[8@x, 4@y]">>
}
}

// -----

// Two products read one gathered operand: its panels travel once. A gather that something else reads too stays for all.
// CHECK-LABEL: @shared
// CHECK-COUNT-1: dist.raw_permute
// CHECK-COUNT-4: nn.matmul
// CHECK-NOT: dist.raw_permute
// CHECK-LABEL: @kept
// CHECK: dist.all_gather
// CHECK-NOT: dist.raw_permute
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"x=1:data, y=2:tensor">} {
func.func @shared(%x: tensor<8x2xf32, #dist.sharding<"[8, 4@y]">>, %v: tensor<4x3xf32, #dist.sharding<"[4, 6@y]">>) -> (tensor<8x3xf32, #dist.sharding<"[8, 6@y]">>, tensor<8x3xf32, #dist.sharding<"[8, 6@y]">>) {
  %0 = dist.all_gather %x {axis = "y", from_dim = 1 : i64, from_sub = 0 : i64, before = #dist.sharding<"[8, 4@y]">,
    after = #dist.sharding<"[8, 4]">} : tensor<8x2xf32, #dist.sharding<"[8, 4@y]">> -> tensor<8x4xf32, #dist.sharding<"[8, 4]">>
  %1 = nn.matmul %0, %v : tensor<8x4xf32, #dist.sharding<"[8, 4]">>, tensor<4x3xf32, #dist.sharding<"[4, 6@y]">> -> tensor<8x3xf32, #dist.sharding<"[8, 6@y]">>
  %t = nn.tanh %1 : tensor<8x3xf32, #dist.sharding<"[8, 6@y]">> -> tensor<8x3xf32, #dist.sharding<"[8, 6@y]">>
  %w = nn.parameter "w" stored <file = "w", bytes = 96, hashes = [0]> : tensor<4x3xf32, #dist.sharding<"[4, 6@y]">>
  %2 = nn.matmul %0, %w : tensor<8x4xf32, #dist.sharding<"[8, 4]">>, tensor<4x3xf32, #dist.sharding<"[4, 6@y]">> -> tensor<8x3xf32, #dist.sharding<"[8, 6@y]">>
  return %t, %2 : tensor<8x3xf32, #dist.sharding<"[8, 6@y]">>, tensor<8x3xf32, #dist.sharding<"[8, 6@y]">>
}
func.func @kept(%x: tensor<8x2xf32, #dist.sharding<"[8, 4@y]">>, %v: tensor<4x3xf32, #dist.sharding<"[4, 6@y]">>) -> (tensor<8x4xf32, #dist.sharding<"[8, 4]">>, tensor<8x3xf32, #dist.sharding<"[8, 6@y]">>) {
  %0 = dist.all_gather %x {axis = "y", from_dim = 1 : i64, from_sub = 0 : i64, before = #dist.sharding<"[8, 4@y]">,
    after = #dist.sharding<"[8, 4]">} : tensor<8x2xf32, #dist.sharding<"[8, 4@y]">> -> tensor<8x4xf32, #dist.sharding<"[8, 4]">>
  %1 = nn.matmul %0, %v : tensor<8x4xf32, #dist.sharding<"[8, 4]">>, tensor<4x3xf32, #dist.sharding<"[4, 6@y]">> -> tensor<8x3xf32, #dist.sharding<"[8, 6@y]">>
  %t = nn.tanh %0 : tensor<8x4xf32, #dist.sharding<"[8, 4]">> -> tensor<8x4xf32, #dist.sharding<"[8, 4]">>
  return %t, %1 : tensor<8x4xf32, #dist.sharding<"[8, 4]">>, tensor<8x3xf32, #dist.sharding<"[8, 6@y]">>
}
}
