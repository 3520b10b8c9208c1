// RUN: hpc-opt %s --hpc-ring-attention --hpc-verify-rings | FileCheck %s

#whole = #dist.sharding<"[2, 4, 9, 8]">
#cut = #dist.sharding<"[2, 4, 9@cp, 8]">
#scalar = #dist.sharding<"[]">
module attributes {dist.mesh = #dist.mesh<"cp=3:sequence">} {

// Each block comes from the next rank while the one before is computed, at its own position; nothing has all keys. One step too few leaves keys out.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x8xf32, {{.*}}>, %[[K:.*]]: tensor<2x4x3x8xf32, {{.*}}>, %[[V:.*]]: tensor<2x4x3x8xf32, {{[^)]*}}>,
// CHECK-NOT: all_gather
// CHECK: %[[K1:.*]] = dist.raw_permute %[[K]] {axis = "cp", cause = "a", shift = 1 : i64} {{.*}} -> tensor<2x4x3x8xf32, #dist.sharding<"[2, 4, 3, 8]">>
// CHECK: %[[V1:.*]] = dist.raw_permute %[[V]]
// CHECK: %[[S0:.*]] = dist.offset {dim = #dist.sharding<"[9@cp]">} : tensor<i64
// CHECK: %[[O0:.*]], %[[L0:.*]] = nn.attention %[[Q]], %[[K]], %[[V]] query_start %[[START:.*]] : {{.*}} key_start %[[S0]] : {{.*}} {causal_offset = 0 : i64, scale = {{.*}}} : {{.*}} -> tensor<2x4x3x8xf32, {{.*}}>, tensor<2x4x3x2xf32, #dist.sharding<"[2, 4, 9@cp, 2]">>
// CHECK: %[[K2:.*]] = dist.raw_permute %[[K1]]
// CHECK: %[[V2:.*]] = dist.raw_permute %[[V1]]
// CHECK: %[[S1:.*]] = dist.offset {dim = #dist.sharding<"[9@cp]">, shift = 1 : i64}
// CHECK: %[[O1:.*]], %[[L1:.*]] = nn.attention %[[Q]], %[[K1]], %[[V1]] {{.*}} key_start %[[S1]] : {{.*}} carried %[[O0]], %[[L0]]
// CHECK-NOT: raw_permute
// CHECK: %[[S2:.*]] = dist.offset {dim = #dist.sharding<"[9@cp]">, shift = 2 : i64}
// CHECK: %[[O2:.*]], %[[L2:.*]] = nn.attention %[[Q]], %[[K2]], %[[V2]] {{.*}} key_start %[[S2]] : {{.*}} carried %[[O1]], %[[L1]] {{.*}}hpc.id = 7

// The gradient reads the log_sum of all keys and the sums of its rows. A block's gradients move with the block, and the last hop brings them home: as many bytes as
// the reduce-scatter had.
// CHECK: %[[P:.*]] = nn.mul %[[G:.*]], %[[O2]]
// CHECK: %[[R:.*]] = nn.reduce sum %[[P]] {axes = array<i64: 3>}
// CHECK: %[[D0:.*]], %[[DK0:.*]], %[[DV0:.*]] = nn.attention_grad %[[Q]], %[[K]], %[[V]], %[[G]] {{.*}} whole %[[L2]], %[[R]]
// CHECK: %[[D1:.*]], %[[DK1:.*]], %[[DV1:.*]] = nn.attention_grad %[[Q]], %{{.*}}, %{{.*}}, %[[G]] {{.*}} whole %[[L2]], %[[R]]
// CHECK: %[[D01:.*]] = nn.add %[[D0]], %[[D1]]
// CHECK: %[[MK:.*]] = dist.raw_permute %[[DK1]] {axis = "cp", cause = "b", shift = 1 : i64}
// CHECK: %[[MV:.*]] = dist.raw_permute %[[DV1]]
// CHECK: %[[D2:.*]], %[[DK2:.*]], %[[DV2:.*]] = nn.attention_grad
// CHECK: %[[DQ:.*]] = nn.add %[[D01]], %[[D2]]
// CHECK: %[[AK:.*]] = nn.add %[[MK]], %[[DK2]]
// CHECK: %[[AV:.*]] = nn.add %[[MV]], %[[DV2]]
// CHECK: %[[HK:.*]] = dist.raw_permute %[[AK]]
// CHECK: %[[DK:.*]] = nn.add %[[DK0]], %[[HK]] {{.*}} -> tensor<2x4x3x8xf32, #dist.sharding<"[2, 4, 9@cp, 8]">>
// CHECK: %[[HV:.*]] = dist.raw_permute %[[AV]]
// CHECK: %[[DV:.*]] = nn.add %[[DV0]], %[[HV]]
// CHECK-NOT: reduce_scatter
// CHECK: return %[[O2]], %[[DQ]], %[[DK]], %[[DV]]
func.func @main(%q: tensor<2x4x3x8xf32, #cut>, %k: tensor<2x4x3x8xf32, #cut>, %v: tensor<2x4x3x8xf32, #cut>, %g: tensor<2x4x3x8xf32, #cut>)
    -> (tensor<2x4x3x8xf32, #cut>, tensor<2x4x3x8xf32, #cut>, tensor<2x4x3x8xf32, #cut>, tensor<2x4x3x8xf32, #cut>) {
  %ks = dist.all_gather %k {axis = "cp", from_dim = 2 : i64, from_sub = 0 : i64, before = #cut, after = #whole, cause = "a"} : tensor<2x4x3x8xf32, #cut> -> tensor<2x4x9x8xf32, #whole>
  %vs = dist.all_gather %v {axis = "cp", from_dim = 2 : i64, from_sub = 0 : i64, before = #cut, after = #whole, cause = "a"} : tensor<2x4x3x8xf32, #cut> -> tensor<2x4x9x8xf32, #whole>
  %start = dist.offset {dim = #dist.sharding<"[9@cp]">} : tensor<i64, #scalar>
  %o = nn.attention %q, %ks, %vs query_start %start : tensor<i64, #scalar> {scale = 0.5 : f64, causal_offset = 0 : i64, hpc.id = 7 : i64}
    : tensor<2x4x3x8xf32, #cut>, tensor<2x4x9x8xf32, #whole>, tensor<2x4x9x8xf32, #whole> -> tensor<2x4x3x8xf32, #cut>
  %dq, %dks, %dvs = nn.attention_grad %q, %ks, %vs, %g query_start %start : tensor<i64, #scalar> {scale = 0.5 : f64, causal_offset = 0 : i64}
    : tensor<2x4x3x8xf32, #cut>, tensor<2x4x9x8xf32, #whole>, tensor<2x4x9x8xf32, #whole>, tensor<2x4x3x8xf32, #cut>
    -> tensor<2x4x3x8xf32, #cut>, tensor<2x4x9x8xf32, #dist.sharding<"[2, 4, 9, 8] partial{cp}">>, tensor<2x4x9x8xf32, #dist.sharding<"[2, 4, 9, 8] partial{cp}">>
  %dk = dist.reduce_scatter %dks {axis = "cp", to_dim = 2 : i64, to_sub = 0 : i64, before = #dist.sharding<"[2, 4, 9, 8] partial{cp}">, after = #cut, cause = "b"}
    : tensor<2x4x9x8xf32, #dist.sharding<"[2, 4, 9, 8] partial{cp}">> -> tensor<2x4x3x8xf32, #cut>
  %dv = dist.reduce_scatter %dvs {axis = "cp", to_dim = 2 : i64, to_sub = 0 : i64, before = #dist.sharding<"[2, 4, 9, 8] partial{cp}">, after = #cut, cause = "b"}
    : tensor<2x4x9x8xf32, #dist.sharding<"[2, 4, 9, 8] partial{cp}">> -> tensor<2x4x3x8xf32, #cut>
  return %o, %dq, %dk, %dv : tensor<2x4x3x8xf32, #cut>, tensor<2x4x3x8xf32, #cut>, tensor<2x4x3x8xf32, #cut>, tensor<2x4x3x8xf32, #cut>
}
}
