// RUN: hpc-opt %s --hpc-pack-collectives -split-input-file -verify-diagnostics

// Sides that split their sub-dims differently name no sub-dim to gather.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
func.func @main(%x: tensor<12xf32, #dist.sharding<"[24@tp]">>) -> tensor<24xf32, #dist.sharding<"[24]">> {
  // expected-error @+1 {{the sub-dims of [24@tp] and [(4, 6)] differ; split both alike}}
  %0 = dist.all_gather %x {axis = "tp", from_dim = 0 : i64, from_sub = 0 : i64, before = #dist.sharding<"[24@tp]">, after = #dist.sharding<"[(4, 6)]">}
    : tensor<12xf32, #dist.sharding<"[24@tp]">> -> tensor<24xf32, #dist.sharding<"[24]">>
  return %0 : tensor<24xf32, #dist.sharding<"[24]">>
}
}

// -----

// The raw collectives say how many blocks they have.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
func.func @main(%x: tensor<12xf32>) -> tensor<3x12xf32> {
  // expected-error @+1 {{(C1) type 'tensor<3x12xf32>' must be one block per rank: 2 along 'tp'}}
  %0 = dist.raw_all_gather %x {axis = "tp"} : tensor<12xf32> -> tensor<3x12xf32>
  return %0 : tensor<3x12xf32>
}
}
