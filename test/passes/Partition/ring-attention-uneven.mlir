// RUN: hpc-opt %s --hpc-ring-attention --hpc-verify-rings -split-input-file | FileCheck %s

// Blocks of 4, 4 and 2: the padding of keys and values is 0 before it travels, and without a causal mask a bias of -inf hides it. Padding that counts as keys changes every row.
// CHECK-LABEL: func.func @main
// CHECK: %[[K:.*]] = dist.fill_tail %{{.*}} {dims = array<i64: 2>, value = 0.000000e+00 : f32} : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 10@cp, 8]">>
// CHECK: %[[V:.*]] = dist.fill_tail
// CHECK: dist.raw_permute %[[K]]
// CHECK: dist.raw_permute %[[V]]
// CHECK: %[[FIRST:.*]] = dist.offset {dim = #dist.sharding<"[10@cp]">}
// CHECK: %[[AT:.*]] = nn.iota offset %[[FIRST]] : {{.*}} {dim = 3 : i64} : tensor<1x1x1x4xi64
// CHECK: %[[END:.*]] = nn.constant dense<10>
// CHECK: %[[IS:.*]] = nn.compare lt %[[AT]], %[[END]]
// CHECK: %[[BIAS:.*]] = nn.select %[[IS]]
// CHECK: nn.attention %{{.*}}, %[[K]], %[[V]] bias %[[BIAS]]
module attributes {dist.mesh = #dist.mesh<"cp=3:sequence">} {
func.func @main(%q: tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 10@cp, 8]">>, %k: tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 10@cp, 8]">>)
    -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 10@cp, 8]">> {
  %ks = dist.all_gather %k {axis = "cp", from_dim = 2 : i64, from_sub = 0 : i64, before = #dist.sharding<"[1, 2, 10@cp, 8]">, after = #dist.sharding<"[1, 2, 10, 8]">}
    : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 10@cp, 8]">> -> tensor<1x2x10x8xf32, #dist.sharding<"[1, 2, 10, 8]">>
  %o = nn.attention %q, %ks, %ks {scale = 0.5 : f64}
    : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 10@cp, 8]">>, tensor<1x2x10x8xf32, #dist.sharding<"[1, 2, 10, 8]">>, tensor<1x2x10x8xf32, #dist.sharding<"[1, 2, 10, 8]">>
    -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 10@cp, 8]">>
  return %o : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 10@cp, 8]">>
}
}

// -----

// In zigzag a rank has positions 0 1 6 7 or 2 3 4 5: a block is two attentions, each with a start by rank. One start for both would mask the wrong keys.
// CHECK-LABEL: func.func @main
// CHECK: %[[FRONT:.*]] = nn.constant dense<[0, 2]>
// CHECK: %[[RANK:.*]] = dist.offset {dim = #dist.sharding<"[2@cp]">}
// CHECK: %[[F:.*]] = nn.gather %[[FRONT]], %[[RANK]]
// CHECK: nn.slice %{{.*}} {starts = array<i64: 0, 0, 0, 0>, {{.*}}} {{.*}} -> tensor<1x2x2x8xf32
// CHECK: nn.attention {{.*}} key_start %[[F]] : {{.*}} query_positions
// CHECK: %[[BACK:.*]] = nn.constant dense<[6, 4]>
// CHECK: nn.slice %{{.*}} {starts = array<i64: 0, 0, 2, 0>
// CHECK: nn.attention {{.*}} query_positions {{.*}} carried
// CHECK: dist.offset {dim = #dist.sharding<"[2@cp]">, shift = 1 : i64}
// CHECK-COUNT-2: nn.attention {{.*}} carried
// CHECK-NOT: nn.attention
module attributes {dist.mesh = #dist.mesh<"cp=2:sequence">} {
func.func @main(%q: tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">>, %k: tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">>, %p: tensor<4xi64, #dist.sharding<"[8@cp]">>)
    -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">> {
  %ks = dist.all_gather %k {axis = "cp", from_dim = 2 : i64, from_sub = 0 : i64, before = #dist.sharding<"[1, 2, 8@cp, 8]">, after = #dist.sharding<"[1, 2, 8, 8]">}
    : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">> -> tensor<1x2x8x8xf32, #dist.sharding<"[1, 2, 8, 8]">>
  %rows = nn.constant dense<[0, 1, 4, 5, 6, 7, 2, 3]> : tensor<8xi64> : tensor<8xi64, #dist.sharding<"[8]">>
  %in = nn.gather %ks, %rows {axis = 2 : i64} : tensor<1x2x8x8xf32, #dist.sharding<"[1, 2, 8, 8]">>, tensor<8xi64, #dist.sharding<"[8]">> -> tensor<1x2x8x8xf32, #dist.sharding<"[1, 2, 8, 8]">>
  %o = nn.attention %q, %in, %in query_positions %p : tensor<4xi64, #dist.sharding<"[8@cp]">> {scale = 0.5 : f64, causal_offset = 0 : i64}
    : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">>, tensor<1x2x8x8xf32, #dist.sharding<"[1, 2, 8, 8]">>, tensor<1x2x8x8xf32, #dist.sharding<"[1, 2, 8, 8]">>
    -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">>
  return %o : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">>
}
}
