// RUN: hpc-opt %s -split-input-file -verify-diagnostics --hpc-verify-propagated

// Every value has a sharding.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  // expected-error@below {{a value of type 'tensor<4xf32>' has no sharding}}
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// A result is what the factors give.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4xf32, #dist.sharding<"[4@tp]">>) -> tensor<4xf32, #dist.sharding<"[4]">> {
    // expected-error@below {{result 0 is [4], its factors give [4@tp]}}
    %y = nn.exp %x {dist.factors = #dist.sharding<"[4@tp]">} : tensor<4xf32, #dist.sharding<"[4@tp]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    return %y : tensor<4xf32, #dist.sharding<"[4]">>
  }
}

// -----

// A factor that a composite or a view needs whole cannot be cut.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4xf32, #dist.sharding<"[4]">>) -> tensor<4xf32, #dist.sharding<"[4@tp]">> {
    // expected-error@below {{factor 0 of size 4 cannot be 4@tp}}
    %y = nn.cumsum %x {axis = 0 : i64, dist.factors = #dist.sharding<"[4@tp]">} : tensor<4xf32, #dist.sharding<"[4]">> -> tensor<4xf32, #dist.sharding<"[4@tp]">>
    return %y : tensor<4xf32, #dist.sharding<"[4@tp]">>
  }
}

// -----

// Partial results are explicit: a cut sum that claims to be complete is a mistake.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x4xf32, #dist.sharding<"[2, 4@tp]">>) -> tensor<2x1xf32, #dist.sharding<"[2, 1]">> {
    // expected-error@below {{result 0 is [2, 1], its factors give [2, 1] partial{tp}}}
    %y = nn.reduce sum %x {axes = array<i64: 1>, dist.factors = #dist.sharding<"[2, 4@tp]">} : tensor<2x4xf32, #dist.sharding<"[2, 4@tp]">> -> tensor<2x1xf32, #dist.sharding<"[2, 1]">>
    return %y : tensor<2x1xf32, #dist.sharding<"[2, 1]">>
  }
}

// -----

// Nothing is partial that neither a sum nor an operand made so.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4xf32, #dist.sharding<"[4]">>) -> tensor<4xf32, #dist.sharding<"[4] partial{tp}">> {
    // expected-error@below {{the result is partial over 'tp', which neither a cut sum nor the operands give}}
    %y = nn.neg %x {dist.factors = #dist.sharding<"[4]">} : tensor<4xf32, #dist.sharding<"[4]">> -> tensor<4xf32, #dist.sharding<"[4] partial{tp}">>
    return %y : tensor<4xf32, #dist.sharding<"[4] partial{tp}">>
  }
}

// -----

// Ids are unique.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4xf32, #dist.sharding<"[4]">>) -> tensor<4xf32, #dist.sharding<"[4]">> {
    %a = nn.neg %x {dist.factors = #dist.sharding<"[4]">, hpc.id = 3 : i64} : tensor<4xf32, #dist.sharding<"[4]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    // expected-error@below {{hpc.id 3 is given twice}}
    %y = nn.neg %a {dist.factors = #dist.sharding<"[4]">, hpc.id = 3 : i64} : tensor<4xf32, #dist.sharding<"[4]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    return %y : tensor<4xf32, #dist.sharding<"[4]">>
  }
}
