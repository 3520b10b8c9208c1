// RUN: hpc-opt %s --hpc-pack-collectives --hpc-fold-transposes | FileCheck %s

module attributes {dist.mesh = #dist.mesh<"x=2:tensor, y=2:tensor">} {

// What is summed over arrives in blocks: one product for each, in one sum, without a copy of the blocks.
// CHECK-LABEL: @sum
// CHECK: %[[X:.*]] = dist.raw_all_gather %arg0 {{.*}} -> tensor<2x5x8xf32>
// CHECK-NOT: nn.transpose
// CHECK: %[[B:.*]] = nn.reshape %[[X]] : tensor<2x5x8xf32> -> tensor<10x8xf32>
// CHECK-NEXT: %[[X0:.*]] = nn.slice %[[B]] {hpc.implicit, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<10x8xf32> -> tensor<5x8xf32>
// CHECK-NEXT: %[[W0:.*]] = nn.slice %[[W:.*]] {hpc.implicit, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<16x6xf32{{.*}}> -> tensor<8x6xf32>
// CHECK-NEXT: %[[P0:.*]] = nn.matmul %[[X0]], %[[W0]]
// CHECK-NEXT: %[[X1:.*]] = nn.slice %[[B]] {hpc.implicit, starts = array<i64: 5, 0>
// CHECK-NEXT: %[[W1:.*]] = nn.slice %[[W]] {hpc.implicit, starts = array<i64: 8, 0>
// CHECK-NEXT: %[[P1:.*]] = nn.matmul %[[X1]], %[[W1]]
// CHECK-NEXT: %[[Y:.*]] = nn.add %[[P0]], %[[P1]] {hpc.adds_in_product}
// CHECK-NEXT: return %[[Y]]
func.func @sum(%x: tensor<5x8xf32, #dist.sharding<"[10@x, 16@y]">>, %w: tensor<8x6xf32, #dist.sharding<"[16@x, 12@y]">>) -> tensor<5x6xf32, #dist.sharding<"[10@x, 12@y]">> {
  %0 = dist.all_gather %x {axis = "y", from_dim = 1 : i64, from_sub = 0 : i64, before = #dist.sharding<"[10@x, 16@y]">, after = #dist.sharding<"[10@x, 16]">}
    : tensor<5x8xf32, #dist.sharding<"[10@x, 16@y]">> -> tensor<5x16xf32, #dist.sharding<"[10@x, 16]">>
  %1 = dist.all_gather %w {axis = "x", from_dim = 0 : i64, from_sub = 0 : i64, before = #dist.sharding<"[16@x, 12@y]">, after = #dist.sharding<"[16, 12@y]">}
    : tensor<8x6xf32, #dist.sharding<"[16@x, 12@y]">> -> tensor<16x6xf32, #dist.sharding<"[16, 12@y]">>
  %2 = nn.matmul %0, %1 : tensor<5x16xf32, #dist.sharding<"[10@x, 16]">>, tensor<16x6xf32, #dist.sharding<"[16, 12@y]">> -> tensor<5x6xf32, #dist.sharding<"[10@x, 12@y]">>
  return %2 : tensor<5x6xf32, #dist.sharding<"[10@x, 12@y]">>
}

// The rows of the result (a weight's gradient) are in blocks, and so is the result.
// CHECK-LABEL: @rows
// CHECK-NOT: nn.transpose
// CHECK: %[[P:.*]] = nn.matmul %{{.*}}, %arg1 {transpose_lhs} : tensor<2x5x8xf32>, tensor<5x6xf32{{.*}}> -> tensor<2x8x6xf32>
// CHECK-NEXT: nn.reshape %[[P]] : tensor<2x8x6xf32> -> tensor<16x6xf32
func.func @rows(%x: tensor<5x8xf32, #dist.sharding<"[5, 16@y]">>, %d: tensor<5x6xf32, #dist.sharding<"[5, 12@y]">>) -> tensor<16x6xf32, #dist.sharding<"[16, 12@y]">> {
  %0 = dist.all_gather %x {axis = "y", from_dim = 1 : i64, from_sub = 0 : i64, before = #dist.sharding<"[5, 16@y]">, after = #dist.sharding<"[5, 16]">}
    : tensor<5x8xf32, #dist.sharding<"[5, 16@y]">> -> tensor<5x16xf32, #dist.sharding<"[5, 16]">>
  %1 = nn.matmul %0, %d {transpose_lhs} : tensor<5x16xf32, #dist.sharding<"[5, 16]">>, tensor<5x6xf32, #dist.sharding<"[5, 12@y]">> -> tensor<16x6xf32, #dist.sharding<"[16, 12@y]">>
  return %1 : tensor<16x6xf32, #dist.sharding<"[16, 12@y]">>
}

// Columns that are scattered: a product for each rank's block.
// CHECK-LABEL: @columns
// CHECK-NOT: nn.transpose
// CHECK: %[[W:.*]] = nn.reshape %{{.*}} -> tensor<2x1x8x6xf32>
// CHECK-NEXT: %[[P:.*]] = nn.matmul %arg0, %[[W]] {transpose_rhs} : tensor<3x5x6xf32{{.*}}>, tensor<2x1x8x6xf32> -> tensor<2x3x5x8xf32>
// CHECK-NOT: nn.transpose
// CHECK: dist.raw_reduce_scatter %{{.*}} -> tensor<3x5x8xf32
func.func @columns(%d: tensor<3x5x6xf32, #dist.sharding<"[3, 5, 12@y]">>, %w: tensor<8x6xf32, #dist.sharding<"[16@x, 12@y]">>) -> tensor<3x5x8xf32, #dist.sharding<"[3, 5, 16@y]">> {
  %0 = dist.all_gather %w {axis = "x", from_dim = 0 : i64, from_sub = 0 : i64, before = #dist.sharding<"[16@x, 12@y]">, after = #dist.sharding<"[16, 12@y]">}
    : tensor<8x6xf32, #dist.sharding<"[16@x, 12@y]">> -> tensor<16x6xf32, #dist.sharding<"[16, 12@y]">>
  %1 = nn.matmul %d, %0 {transpose_rhs} : tensor<3x5x6xf32, #dist.sharding<"[3, 5, 12@y]">>, tensor<16x6xf32, #dist.sharding<"[16, 12@y]">> -> tensor<3x5x16xf32, #dist.sharding<"[3, 5, 16] partial{y}">>
  %2 = dist.reduce_scatter %1 {axis = "y", to_dim = 2 : i64, to_sub = 0 : i64, before = #dist.sharding<"[3, 5, 16] partial{y}">, after = #dist.sharding<"[3, 5, 16@y]">}
    : tensor<3x5x16xf32, #dist.sharding<"[3, 5, 16] partial{y}">> -> tensor<3x5x8xf32, #dist.sharding<"[3, 5, 16@y]">>
  return %2 : tensor<3x5x8xf32, #dist.sharding<"[3, 5, 16@y]">>
}

// A wide sum costs more to read again than its operand to copy, something else needs the whole rows, and 16 bits hold no partial sums.
// CHECK-LABEL: @stays
// CHECK-COUNT-3: nn.transpose
// CHECK-NOT: hpc.implicit
// CHECK: return
func.func @stays(%x: tensor<5x8xf32, #dist.sharding<"[5, 16@y]">>, %w: tensor<8x20xf32, #dist.sharding<"[16@x, 40@y]">>, %n: tensor<16x6xf32>, %v: tensor<5x8xbf16, #dist.sharding<"[5, 16@y]">>,
    %m: tensor<8x6xbf16, #dist.sharding<"[16@x, 12@y]">>) -> (tensor<5x20xf32>, tensor<5x6xf32>, tensor<5x16xf32, #dist.sharding<"[5, 16]">>, tensor<5x6xbf16>) {
  %0 = dist.all_gather %x {axis = "y", from_dim = 1 : i64, from_sub = 0 : i64, before = #dist.sharding<"[5, 16@y]">, after = #dist.sharding<"[5, 16]">}
    : tensor<5x8xf32, #dist.sharding<"[5, 16@y]">> -> tensor<5x16xf32, #dist.sharding<"[5, 16]">>
  %1 = dist.all_gather %w {axis = "x", from_dim = 0 : i64, from_sub = 0 : i64, before = #dist.sharding<"[16@x, 40@y]">, after = #dist.sharding<"[16, 40@y]">}
    : tensor<8x20xf32, #dist.sharding<"[16@x, 40@y]">> -> tensor<16x20xf32, #dist.sharding<"[16, 40@y]">>
  %2 = nn.matmul %0, %1 : tensor<5x16xf32, #dist.sharding<"[5, 16]">>, tensor<16x20xf32, #dist.sharding<"[16, 40@y]">> -> tensor<5x20xf32>
  %3 = dist.all_gather %x {axis = "y", from_dim = 1 : i64, from_sub = 0 : i64, before = #dist.sharding<"[5, 16@y]">, after = #dist.sharding<"[5, 16]">}
    : tensor<5x8xf32, #dist.sharding<"[5, 16@y]">> -> tensor<5x16xf32, #dist.sharding<"[5, 16]">>
  %4 = nn.matmul %3, %n : tensor<5x16xf32, #dist.sharding<"[5, 16]">>, tensor<16x6xf32> -> tensor<5x6xf32>
  %5 = dist.all_gather %v {axis = "y", from_dim = 1 : i64, from_sub = 0 : i64, before = #dist.sharding<"[5, 16@y]">, after = #dist.sharding<"[5, 16]">}
    : tensor<5x8xbf16, #dist.sharding<"[5, 16@y]">> -> tensor<5x16xbf16, #dist.sharding<"[5, 16]">>
  %6 = dist.all_gather %m {axis = "x", from_dim = 0 : i64, from_sub = 0 : i64, before = #dist.sharding<"[16@x, 12@y]">, after = #dist.sharding<"[16, 12@y]">}
    : tensor<8x6xbf16, #dist.sharding<"[16@x, 12@y]">> -> tensor<16x6xbf16, #dist.sharding<"[16, 12@y]">>
  %7 = nn.matmul %5, %6 : tensor<5x16xbf16, #dist.sharding<"[5, 16]">>, tensor<16x6xbf16, #dist.sharding<"[16, 12@y]">> -> tensor<5x6xbf16>
  return %2, %4, %3, %7 : tensor<5x20xf32>, tensor<5x6xf32>, tensor<5x16xf32, #dist.sharding<"[5, 16]">>, tensor<5x6xbf16>
}

// A weight that is read as it is stored may be packed for a product that reads all of it, and is not taken apart.
// CHECK-LABEL: @packed
// CHECK: nn.transpose
// CHECK-NOT: hpc.implicit
func.func @packed(%x: tensor<5x8xf32, #dist.sharding<"[5, 16@y]">>) -> tensor<5x6xf32> {
  %w = nn.parameter "w" stored <bytes = 384> : tensor<16x6xf32>
  %0 = dist.all_gather %x {axis = "y", from_dim = 1 : i64, from_sub = 0 : i64, before = #dist.sharding<"[5, 16@y]">, after = #dist.sharding<"[5, 16]">}
    : tensor<5x8xf32, #dist.sharding<"[5, 16@y]">> -> tensor<5x16xf32, #dist.sharding<"[5, 16]">>
  %1 = nn.matmul %0, %w : tensor<5x16xf32, #dist.sharding<"[5, 16]">>, tensor<16x6xf32> -> tensor<5x6xf32>
  return %1 : tensor<5x6xf32>
}
}
