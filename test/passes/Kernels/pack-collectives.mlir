// RUN: hpc-opt %s --hpc-pack-collectives | FileCheck %s

module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=2:tensor">} {

// A gather of the major dim is the raw collective alone: blocks lie one after the other already.
// CHECK-LABEL: @rows
// CHECK: %[[G:.*]] = dist.raw_all_gather %{{.*}} {avoid = "b", axis = "tp", cause = "a"} : tensor<4x6xf32, #dist.sharding<"[8@tp, 6]">> -> tensor<2x4x6xf32>
// CHECK-NEXT: %[[R:.*]] = nn.reshape %[[G]] : tensor<2x4x6xf32> -> tensor<8x6xf32, #dist.sharding<"[8, 6]">>
// CHECK-NEXT: return %[[R]]
func.func @rows(%x: tensor<4x6xf32, #dist.sharding<"[8@tp, 6]">>) -> tensor<8x6xf32, #dist.sharding<"[8, 6]">> {
  %0 = dist.all_gather %x {axis = "tp", from_dim = 0 : i64, from_sub = 0 : i64, cause = "a", avoid = "b", before = #dist.sharding<"[8@tp, 6]">,
    after = #dist.sharding<"[8, 6]">} : tensor<4x6xf32, #dist.sharding<"[8@tp, 6]">> -> tensor<8x6xf32, #dist.sharding<"[8, 6]">>
  return %0 : tensor<8x6xf32, #dist.sharding<"[8, 6]">>
}

// Heads of a fused dim: five heads over two ranks become compact, the padded sixth is sliced off.
// CHECK-LABEL: @heads
// CHECK: %[[G:.*]] = dist.raw_all_gather %{{.*}} -> tensor<2x7x24xf32>
// CHECK-NEXT: %[[S:.*]] = nn.reshape %[[G]] : tensor<2x7x24xf32> -> tensor<2x7x3x8xf32>
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[S]] {permutation = array<i64: 1, 0, 2, 3>}
// CHECK-NEXT: %[[M:.*]] = nn.reshape %[[T]] : tensor<7x2x3x8xf32> -> tensor<7x6x8xf32>
// CHECK-NEXT: %[[C:.*]] = nn.slice %[[M]] {{.*}} : tensor<7x6x8xf32> -> tensor<7x5x8xf32>
// CHECK-NEXT: nn.reshape %[[C]] : tensor<7x5x8xf32> -> tensor<7x40xf32, #dist.sharding<"[7, 40]">>
func.func @heads(%x: tensor<7x24xf32, #dist.sharding<"[7, (5@tp, 8)]">>) -> tensor<7x40xf32, #dist.sharding<"[7, 40]">> {
  %0 = dist.all_gather %x {axis = "tp", from_dim = 1 : i64, from_sub = 0 : i64, before = #dist.sharding<"[7, (5@tp, 8)]">,
    after = #dist.sharding<"[7, (5, 8)]">} : tensor<7x24xf32, #dist.sharding<"[7, (5@tp, 8)]">> -> tensor<7x40xf32, #dist.sharding<"[7, 40]">>
  return %0 : tensor<7x40xf32, #dist.sharding<"[7, 40]">>
}

// Each rank's block is padded to the same size before it is scattered.
// CHECK-LABEL: @scatter
// CHECK: %[[P:.*]] = nn.pad %{{.*}} {high = array<i64: 0, 1>, low = array<i64: 0, 0>, value = 0.000000e+00 : f32} : {{.*}} -> tensor<3x6xf32>
// CHECK-NEXT: %[[S:.*]] = nn.reshape %[[P]] : tensor<3x6xf32> -> tensor<3x2x3xf32>
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[S]] {permutation = array<i64: 1, 0, 2>}
// CHECK-NEXT: dist.raw_reduce_scatter %[[T]] {axis = "tp"} : tensor<2x3x3xf32> -> tensor<3x3xf32, #dist.sharding<"[3, 5@tp]">>
func.func @scatter(%x: tensor<3x5xf32, #dist.sharding<"[3, 5] partial{tp}">>) -> tensor<3x3xf32, #dist.sharding<"[3, 5@tp]">> {
  %0 = dist.reduce_scatter %x {axis = "tp", to_dim = 1 : i64, to_sub = 0 : i64, before = #dist.sharding<"[3, 5] partial{tp}">,
    after = #dist.sharding<"[3, 5@tp]">} : tensor<3x5xf32, #dist.sharding<"[3, 5] partial{tp}">> -> tensor<3x3xf32, #dist.sharding<"[3, 5@tp]">>
  return %0 : tensor<3x3xf32, #dist.sharding<"[3, 5@tp]">>
}

// Columns come, rows go: one block per rank in front on either side.
// CHECK-LABEL: @exchange
// CHECK: dist.raw_all_to_all %{{.*}} {axis = "tp"} : tensor<2x2x6xf32> -> tensor<2x2x6xf32>
// CHECK: nn.transpose
func.func @exchange(%x: tensor<4x6xf32, #dist.sharding<"[4, 12@tp]">>) -> tensor<2x12xf32, #dist.sharding<"[4@tp, 12]">> {
  %0 = dist.all_to_all %x {axis = "tp", from_dim = 1 : i64, from_sub = 0 : i64, to_dim = 0 : i64, to_sub = 0 : i64, before = #dist.sharding<"[4, 12@tp]">,
    after = #dist.sharding<"[4@tp, 12]">} : tensor<4x6xf32, #dist.sharding<"[4, 12@tp]">> -> tensor<2x12xf32, #dist.sharding<"[4@tp, 12]">>
  return %0 : tensor<2x12xf32, #dist.sharding<"[4@tp, 12]">>
}

// Whole boxes need no packing.
// CHECK-LABEL: @reduce
// CHECK: dist.all_reduce
func.func @reduce(%x: tensor<3xf32, #dist.sharding<"[3] partial{tp}">>) -> tensor<3xf32, #dist.sharding<"[3]">> {
  %0 = dist.all_reduce %x {axes = ["tp"], kind = #dist<reduce_kind sum>, before = #dist.sharding<"[3] partial{tp}">, after = #dist.sharding<"[3]">}
    : tensor<3xf32, #dist.sharding<"[3] partial{tp}">> -> tensor<3xf32, #dist.sharding<"[3]">>
  return %0 : tensor<3xf32, #dist.sharding<"[3]">>
}
}
