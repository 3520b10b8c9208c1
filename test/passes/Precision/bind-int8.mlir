// RUN: hpc-opt %s --hpc-bind-int8 --split-input-file | FileCheck %s

// A step reads codes, a quarter of the bytes, and scales columns behind the sum. --verify finds the product's value by its number, which is the scaled one's.
// CHECK-LABEL: @linear
// CHECK-DAG: %[[C:.*]] = nn.parameter "w" stored <{{.*}}type = f32, int8_along = 0> : tensor<8x6xi8>
// CHECK-DAG: %[[S:.*]] = nn.parameter "w" stored <{{.*}}int8_along = 0, int8_size = 8> : tensor<6xf32>
// CHECK: %[[P:.*]] = nn.matmul %arg0, %[[C]] : tensor<4x8xf32>, tensor<8x6xi8> -> tensor<4x6xf32>
// CHECK: %[[Y:.*]] = nn.mul %[[P]], %[[S]] {hpc.id = 7 : i64}
// CHECK-NOT: nn.parameter
// CHECK: return %[[Y]]
func.func @linear(%x: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1], int8_along = 0> {hpc.id = 6 : i64} : tensor<8x6xf32>
  %y = nn.matmul %x, %w {hpc.id = 7 : i64} : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// Cut along the lines by tp, a rank has a part of each and the scales of all: the product of a part is scaled before partial sums are added up. Of a part of what is
// stored, the scales are a part of the stored one's.
// CHECK-LABEL: @cut
// CHECK-DAG: nn.parameter "row" stored <{{.*}}int8_size = 8> : tensor<6xf32, #dist.sharding<"[6]">>
// CHECK-DAG: nn.parameter "column" stored <{{.*}}shape = [18], starts = [12], int8_along = {{[01]}}, int8_size = 4> : tensor<3xf32, #dist.sharding<"[6@tp]">>
func.func @cut(%x: tensor<5x4xf32, #dist.sharding<"[5, 8@tp]">>, %z: tensor<5x4xf32, #dist.sharding<"[5, 4]">>)
    -> (tensor<5x6xf32, #dist.sharding<"[5, 6] partial{tp}">>, tensor<5x3xf32, #dist.sharding<"[5, 6@tp]">>) {
  %w = nn.parameter "row" stored <file = "f", bytes = 192, hashes = [1], int8_along = 0> : tensor<4x6xf32, #dist.sharding<"[8@tp, 6]">>
  %y = nn.matmul %x, %w : tensor<5x4xf32, #dist.sharding<"[5, 8@tp]">>, tensor<4x6xf32, #dist.sharding<"[8@tp, 6]">> -> tensor<5x6xf32, #dist.sharding<"[5, 6] partial{tp}">>
  %v = nn.parameter "column" stored <file = "f", bytes = 288, hashes = [1], shape = [4, 18], starts = [0, 12], int8_along = 0> : tensor<4x3xf32, #dist.sharding<"[4, 6@tp]">>
  %u = nn.matmul %z, %v : tensor<5x4xf32, #dist.sharding<"[5, 4]">>, tensor<4x3xf32, #dist.sharding<"[4, 6@tp]">> -> tensor<5x3xf32, #dist.sharding<"[5, 6@tp]">>
  return %y, %u : tensor<5x6xf32, #dist.sharding<"[5, 6] partial{tp}">>, tensor<5x3xf32, #dist.sharding<"[5, 6@tp]">>
}

// -----

// Rounded on its way to a product of 16 bits, it need not be: codes are exact there, and so is more of the product. What the product was to round, the scaled one is.
// Experts' scales stand beside their columns.
// CHECK-LABEL: @narrow
// CHECK: nn.matmul %arg0, {{.*}} {transpose_rhs} : tensor<4x8xbf16>, tensor<6x8xi8> -> tensor<4x6xf32>
// CHECK-NEXT: nn.mul
// CHECK-NEXT: nn.cast {{.*}} {hpc.id = 3 : i64} : tensor<4x6xf32> -> tensor<4x6xbf16>
// CHECK: %[[S:.*]] = nn.reshape {{.*}} : tensor<2x6xf32> -> tensor<2x1x6xf32>
// CHECK: %[[P:.*]] = nn.matmul %arg1
// CHECK: nn.mul %[[P]], %[[S]]
func.func @narrow(%x: tensor<4x8xbf16>, %e: tensor<2x4x8xf32>) -> (tensor<4x6xbf16>, tensor<2x4x6xf32>) {
  %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1], type = f32, int8_along = 1> : tensor<6x8xbf16>
  %y = nn.matmul %x, %w {transpose_rhs, hpc.id = 3 : i64} : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  %s = nn.parameter "experts" stored <file = "f", bytes = 384, hashes = [1], int8_along = 1> : tensor<2x8x6xf32>
  %z = nn.matmul %e, %s : tensor<2x4x8xf32>, tensor<2x8x6xf32> -> tensor<2x4x6xf32>
  return %y, %z : tensor<4x6xbf16>, tensor<2x4x6xf32>
}

// -----

// Of 5 heads over 3 ranks one has a head less: where a cast stood between, partition has filled the weight's padding with zeros, which a weight has there anyway. Taken for another
// reader, it would make the product one of floats.
// CHECK-LABEL: @filled
// CHECK-NOT: dist.fill_tail
// CHECK: nn.matmul %arg0, {{.*}} : tensor<5x16xbf16, {{.*}}>, tensor<16x6xi8, {{.*}}>
func.func @filled(%x: tensor<5x16xbf16, #dist.sharding<"[5, (5@tp, 8)]">>) -> tensor<5x6xf32, #dist.sharding<"[5, 6] partial{tp}">> {
  %w = nn.parameter "w" stored <file = "f", bytes = 960, hashes = [1], type = f32, int8_along = 0> : tensor<16x6xbf16, #dist.sharding<"[(5@tp, 8), 6]">>
  %f = dist.fill_tail %w {dims = array<i64: 0>, value = 0.0 : bf16} : tensor<16x6xbf16, #dist.sharding<"[(5@tp, 8), 6]">> -> tensor<16x6xbf16, #dist.sharding<"[(5@tp, 8), 6]">>
  %y = nn.matmul %x, %f : tensor<5x16xbf16, #dist.sharding<"[5, (5@tp, 8)]">>, tensor<16x6xbf16, #dist.sharding<"[(5@tp, 8), 6]">> -> tensor<5x6xf32, #dist.sharding<"[5, 6] partial{tp}">>
  return %y : tensor<5x6xf32, #dist.sharding<"[5, 6] partial{tp}">>
}

// -----

// What reads it otherwise has the same numbers, in the memory of floats: here a sum, and a product over the other dim.
// CHECK-LABEL: @others
// CHECK: %[[W:.*]] = nn.parameter "w" stored <{{.*}}int8_along = 0> : tensor<8x6xf32>
// CHECK: nn.add %[[W]], %[[W]]
// CHECK: nn.matmul %arg0, %[[W]] {transpose_rhs}
func.func @others(%x: tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<4x8xf32>) {
  %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1], int8_along = 0> : tensor<8x6xf32>
  %y = nn.add %w, %w : tensor<8x6xf32>, tensor<8x6xf32> -> tensor<8x6xf32>
  %z = nn.matmul %x, %w {transpose_rhs} : tensor<4x6xf32>, tensor<8x6xf32> -> tensor<4x8xf32>
  return %y, %z : tensor<8x6xf32>, tensor<4x8xf32>
}
