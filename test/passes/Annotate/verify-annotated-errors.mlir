// RUN: hpc-opt %s --hpc-verify-annotated --split-input-file -verify-diagnostics

// expected-error @below {{module has no dist.mesh; run hpc-build-mesh}}
module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// A seed must be a sharding of its tensor: sizes whose product is the dim, axes of the mesh.
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=1, tp=2">} {
  func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
    // expected-error @below {{seed #dist.sharding<"[(2@tp, 4)]"> of 'tensor<6xf32>'}}
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6xf32>, dist.seed = #dist.sharding<"[(2@tp, 4)]">} : tensor<6xf32>
    %y = nn.add %x, %w : tensor<6xf32>, tensor<6xf32> -> tensor<6xf32>
    return %y : tensor<6xf32>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"mb=1, dp=1, tp=2">} {
  // expected-error @below {{seed #dist.sharding<"[6@pp]"> of 'tensor<6xf32>'}}
  func.func @main(%x: tensor<6xf32> {dist.seed = #dist.sharding<"[6@pp]">}) -> tensor<6xf32> {
    return %x : tensor<6xf32>
  }
}

// -----

// Types get their sharding in the next phase.
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=1, tp=2">} {
  func.func @main(%x: tensor<6xf32>) -> tensor<6xf32, #dist.sharding<"[6@tp]">> {
    // expected-error @below {{carries a sharding before propagation}}
    %y = nn.exp %x : tensor<6xf32> -> tensor<6xf32, #dist.sharding<"[6@tp]">>
    return %y : tensor<6xf32, #dist.sharding<"[6@tp]">>
  }
}
