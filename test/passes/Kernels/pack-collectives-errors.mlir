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

// -----

// A box of another shape has no place for what arrives.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
func.func @main(%x: tensor<12xf32>) -> tensor<6xf32> {
  // expected-error @+1 {{(C1) operand 'tensor<12xf32>' and result 'tensor<6xf32>' must have one shape and element type}}
  %0 = dist.raw_permute %x {axis = "tp", shift = 1 : i64} : tensor<12xf32> -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
}

// -----

// A skew along an axis that is not there, or along the ring itself, would be no skew, or no exchange of places.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
func.func @main(%x: tensor<12xf32>) -> (tensor<12xf32>, tensor<12xf32>) {
  // expected-error @+1 {{(C2) skew 'tp' must be another axis of the mesh 'tp=2:tensor' than 'tp'}}
  %0 = dist.raw_permute %x {axis = "tp", shift = 1 : i64, skew = "tp"} : tensor<12xf32> -> tensor<12xf32>
  return %0, %0 : tensor<12xf32>, tensor<12xf32>
}
}

// -----

// A part of a dim that the operand does not have, of another size than the cut says, or without the axis that names it.
module attributes {dist.mesh = #dist.mesh<"x=2:data, y=3:tensor">} {
func.func @dim(%x: tensor<7x4xf32>) -> tensor<3x4xf32> {
  // expected-error @+1 {{(C1) dim 2 is no dim of 'tensor<7x4xf32>'}}
  %0 = dist.raw_block %x {dim = 2 : i64, cut = #dist.sharding<"[7@y]">, shift = 0 : i64} : tensor<7x4xf32> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
func.func @result(%x: tensor<7x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{(C2) the result of 'tensor<7x4xf32>' is 'tensor<2x4xf32>' and must have 3 at dim 0}}
  %0 = dist.raw_block %x {dim = 0 : i64, cut = #dist.sharding<"[7@y]">, shift = 0 : i64} : tensor<7x4xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
func.func @operand(%x: tensor<6x4xf32>) -> tensor<3x4xf32> {
  // expected-error @+1 {{(C3) dim 0 of 'tensor<6x4xf32>' must be 7 or 3}}
  %0 = dist.raw_block %x {dim = 0 : i64, cut = #dist.sharding<"[7@y]">, shift = 0 : i64} : tensor<6x4xf32> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
func.func @cut(%x: tensor<7x4xf32>) -> tensor<7x4xf32> {
  // expected-error @+1 {{(C4) cut [7] must be one dim whose first sub-dim one axis cuts}}
  %0 = dist.raw_block %x {dim = 0 : i64, cut = #dist.sharding<"[7]">, shift = 0 : i64} : tensor<7x4xf32> -> tensor<7x4xf32>
  return %0 : tensor<7x4xf32>
}
func.func @skew(%x: tensor<7x4xf32>) -> tensor<3x4xf32> {
  // expected-error @+1 {{(C4) cut [7@y] must be one dim}}
  %0 = dist.raw_block %x {dim = 0 : i64, cut = #dist.sharding<"[7@y]">, shift = 0 : i64, skew = "y"} : tensor<7x4xf32> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
}
