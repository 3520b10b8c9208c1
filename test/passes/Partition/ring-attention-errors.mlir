// RUN: hpc-opt %s --hpc-ring-attention -split-input-file -verify-diagnostics

// Keys that come block by block with values that are all there would belong to other positions.
module attributes {dist.mesh = #dist.mesh<"cp=2:sequence">} {
func.func @main(%q: tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">>, %v: tensor<1x2x8x8xf32, #dist.sharding<"[1, 2, 8, 8]">>) -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">> {
  %ks = dist.all_gather %q {axis = "cp", from_dim = 2 : i64, from_sub = 0 : i64, before = #dist.sharding<"[1, 2, 8@cp, 8]">, after = #dist.sharding<"[1, 2, 8, 8]">}
    : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">> -> tensor<1x2x8x8xf32, #dist.sharding<"[1, 2, 8, 8]">>
  // expected-error @+1 {{--cp-mode=ring: nn.attention has keys and values that are not cut alike; use --cp-mode=gather}}
  %o = nn.attention %q, %ks, %v {scale = 0.5 : f64}
    : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">>, tensor<1x2x8x8xf32, #dist.sharding<"[1, 2, 8, 8]">>, tensor<1x2x8x8xf32, #dist.sharding<"[1, 2, 8, 8]">>
    -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">>
  return %o : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 8@cp, 8]">>
}
}
