// RUN: hpc-opt %s -split-input-file -verify-diagnostics --hpc-propagate-shardings

// A sum over the batch would need all micro-batches at once.
module attributes {dist.mesh = #dist.mesh<"mb=2, tp=2">} {
  func.func @main(%x: tensor<4x6xf32> {dist.seed = #dist.sharding<"[4@mb, 6]">}) -> tensor<1x6xf32> {
    // expected-error@below {{[unsupported] nn.reduce combines elements of different micro-batches (the batch dim 4@mb is reduced): batch statistics need the whole batch at once; use --micro-batches=1}}
    %y = nn.reduce sum %x {axes = array<i64: 0>} : tensor<4x6xf32> -> tensor<1x6xf32>
    return %y : tensor<1x6xf32>
  }
}

// -----

// A seed that names an axis which the mesh lacks.
module attributes {dist.mesh = #dist.mesh<"tp=2">} {
  func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    // expected-error@below {{[sidecar] w: sharding '[6@row, 6]': the mesh 'tp=2' has no axis 'row'}}
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x6xf32>, dist.seed = #dist.sharding<"[6@row, 6]">} : tensor<6x6xf32>
    %y = nn.matmul %x, %w : tensor<4x6xf32>, tensor<6x6xf32> -> tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}

// -----

// A seed that does not multiply to the dim.
module attributes {dist.mesh = #dist.mesh<"tp=2">} {
  func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    // expected-error@below {{[sidecar] w: sharding '[(2@tp, 4), 6]': the sub-dims of dim 0 multiply to 8, the tensor's dim is 6}}
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x6xf32>, dist.seed = #dist.sharding<"[(2@tp, 4), 6]">} : tensor<6x6xf32>
    %y = nn.matmul %x, %w : tensor<4x6xf32>, tensor<6x6xf32> -> tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}

// -----

// A seed cannot ask for a partial sum.
module attributes {dist.mesh = #dist.mesh<"tp=2">} {
  // expected-error@below {{[sidecar] input 0: sharding '[4, 6] partial{tp}': a seed cannot be partial}}
  func.func @main(%x: tensor<4x6xf32> {dist.seed = #dist.sharding<"[4, 6] partial{tp}">}) -> tensor<4x6xf32> {
    return %x : tensor<4x6xf32>
  }
}

// -----

// A seed that the op cannot follow is said, not silently dropped: 6 heads by threes do not nest with 2 groups.
module attributes {dist.mesh = #dist.mesh<"tp=2">} {
  func.func @main(%x: tensor<6x4xf32>) -> tensor<8x3xf32> {
    // expected-remark@below {{the op cannot compute dim 0 cut 8@tp as the seed asks}}
    %y = nn.reshape %x {dist.seed = #dist.sharding<"[8@tp, 3]">} : tensor<6x4xf32> -> tensor<8x3xf32>
    return %y : tensor<8x3xf32>
  }
}

// -----

// A conflict that moves data is reported with its bytes.
module attributes {dist.mesh = #dist.mesh<"tp=2">} {
  func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[4, 6@tp]">} : tensor<4x6xf32> -> tensor<4x6xf32>
    // expected-remark@below {{operand 0 is [4, 6@tp], the op needs [4, 6]: 48 bytes are moved to every rank}}
    %y = nn.softmax %a : tensor<4x6xf32> -> tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}
