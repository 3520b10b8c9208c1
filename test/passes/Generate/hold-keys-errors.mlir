// RUN: hpc-opt %s --split-input-file --hpc-hold-keys -verify-diagnostics

// A sum over positions: the op that adds up is named.
module attributes {dist.mesh = #dist.mesh<"cp=4:sequence, row=2:sequence">} {
  func.func @main(%x: tensor<4x2x6xf32, #dist.sharding<"[4, 8@cp, 6]">> {nn.name = "x"}) -> tensor<4x1x6xf32, #dist.sharding<"[4, 1, 6]">> {
    // expected-error @below {{[unsupported] --generate: nn.reduce mixes the positions of a sequence, and a step has nothing of earlier positions but the keys and values of attention; generate with a model whose positions meet in causal attention alone}}
    %0 = nn.reduce sum %x {axes = array<i64: 1>} : tensor<4x2x6xf32, #dist.sharding<"[4, 8@cp, 6]">> -> tensor<4x1x6xf32, #dist.sharding<"[4, 1, 6] partial{cp}">>
    %1 = dist.all_reduce %0 {after = #dist.sharding<"[4, 1, 6]">, axes = ["cp"], before = #dist.sharding<"[4, 1, 6] partial{cp}">, kind = #dist<reduce_kind sum>} : tensor<4x1x6xf32, #dist.sharding<"[4, 1, 6] partial{cp}">> -> tensor<4x1x6xf32, #dist.sharding<"[4, 1, 6]">>
    return %1 : tensor<4x1x6xf32, #dist.sharding<"[4, 1, 6]">>
  }
}

// -----

// Keys that another op reads whole, too: it is named, not the attention.
module attributes {dist.mesh = #dist.mesh<"cp=4:sequence, row=2:sequence">} {
  func.func @main(%x: tensor<1x2x2x6xf32, #dist.sharding<"[1, 2, 8@cp, 6]">> {nn.name = "x"})
      -> (tensor<1x2x2x6xf32, #dist.sharding<"[1, 2, 8@cp, 6]">>, tensor<1x2x8x6xf32, #dist.sharding<"[1, 2, 8, 6]">>) {
    %k = dist.all_gather %x {after = #dist.sharding<"[1, 2, 8, 6]">, axis = "cp", before = #dist.sharding<"[1, 2, 8@cp, 6]">, from_dim = 2 : i64, from_sub = 0 : i64} : tensor<1x2x2x6xf32, #dist.sharding<"[1, 2, 8@cp, 6]">> -> tensor<1x2x8x6xf32, #dist.sharding<"[1, 2, 8, 6]">>
    // expected-error @below {{--generate: nn.cumsum mixes the positions of a sequence}}
    %s = nn.cumsum %k {axis = 2 : i64} : tensor<1x2x8x6xf32, #dist.sharding<"[1, 2, 8, 6]">> -> tensor<1x2x8x6xf32, #dist.sharding<"[1, 2, 8, 6]">>
    %a = nn.attention %x, %k, %k {scale = 0.5 : f64} : tensor<1x2x2x6xf32, #dist.sharding<"[1, 2, 8@cp, 6]">>, tensor<1x2x8x6xf32, #dist.sharding<"[1, 2, 8, 6]">>, tensor<1x2x8x6xf32, #dist.sharding<"[1, 2, 8, 6]">> -> tensor<1x2x2x6xf32, #dist.sharding<"[1, 2, 8@cp, 6]">>
    return %a, %s : tensor<1x2x2x6xf32, #dist.sharding<"[1, 2, 8@cp, 6]">>, tensor<1x2x8x6xf32, #dist.sharding<"[1, 2, 8, 6]">>
  }
}

// -----

// Two elements a position would begin elsewhere than at the position.
module attributes {dist.mesh = #dist.mesh<"cp=4:sequence, row=2:sequence">} {
  func.func @main(%x: tensor<4x4xf32, #dist.sharding<"[4, 16@cp]">> {nn.name = "x"}) -> tensor<4x4xf32, #dist.sharding<"[4, 16@cp]">> {
    %0 = nn.iota {dim = 1 : i64} : tensor<1x16xf32, #dist.sharding<"[1, 16]">>
    %1 = dist.slice %0 {after = #dist.sharding<"[1, 16@cp]">, axis = "cp", before = #dist.sharding<"[1, 16]">, to_dim = 1 : i64, to_sub = 0 : i64} : tensor<1x16xf32, #dist.sharding<"[1, 16]">> -> tensor<1x4xf32, #dist.sharding<"[1, 16@cp]">>
    // expected-error @below {{[unsupported] --generate: nn.add has a dim of 16 that moves with the 8 positions of a sequence; export the model with one element a position there}}
    %2 = nn.add %x, %1 : tensor<4x4xf32, #dist.sharding<"[4, 16@cp]">>, tensor<1x4xf32, #dist.sharding<"[1, 16@cp]">> -> tensor<4x4xf32, #dist.sharding<"[4, 16@cp]">>
    return %2 : tensor<4x4xf32, #dist.sharding<"[4, 16@cp]">>
  }
}
