// RUN: hpc-opt %s -split-input-file -verify-diagnostics --hpc-propagate-shardings

// A mean over the batch, used in every micro-batch, would need all of them at once.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, tp=2:tensor">} {
  func.func @main(%x: tensor<4x6xf32> {dist.seed = #dist.sharding<"[4@mb, 6]">}) -> tensor<4x6xf32> {
    %y = nn.reduce sum %x {axes = array<i64: 0>} : tensor<4x6xf32> -> tensor<1x6xf32>
    %t = nn.tanh %y : tensor<1x6xf32> -> tensor<1x6xf32>
    // expected-error@below {{[unsupported] nn.sub reads in every micro-batch what is a sum over all of them, known only at the end of the step, as batch statistics and ratios of sums (a Dice loss) do: it needs the whole batch at once; use --micro-batches=1}}
    %z = nn.sub %x, %t : tensor<4x6xf32>, tensor<1x6xf32> -> tensor<4x6xf32>
    return %z : tensor<4x6xf32>
  }
}

// -----

// Only sums are accumulated: a maximum over micro-batches is refused.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, tp=2:tensor">} {
  func.func @main(%x: tensor<4x6xf32> {dist.seed = #dist.sharding<"[4@mb, 6]">}) -> tensor<1x6xf32> {
    // expected-error@below {{[unsupported] nn.reduce combines elements of different micro-batches (the batch dim 4@mb is reduced), as batch statistics do: it needs the whole batch at once; use --micro-batches=1}}
    %y = nn.reduce max %x {axes = array<i64: 0>} : tensor<4x6xf32> -> tensor<1x6xf32>
    return %y : tensor<1x6xf32>
  }
}

// -----

// What lives across steps cannot be cut over time.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, tp=2:tensor">} {
  // expected-error@below {{[sidecar] input 0: sharding '[4@mb, 6]': cuts over 'mb', which is time; what lives across steps cannot}}
  func.func @main(%m: tensor<4x6xf32> {nn.state = "m", dist.seed = #dist.sharding<"[4@mb, 6]">}) -> tensor<4x6xf32> {
    return %m : tensor<4x6xf32>
  }
}

// -----

// The user's own word is not dropped: what the op can do is said.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<6x4xf32>) -> tensor<8x3xf32> {
    // expected-error@below {{[sidecar] nn.reshape: the op (view) cannot compute dim 0 cut 8@tp as the sidecar asks; it can have that dim whole, 8: ask for that, or for a cut that nests with the op's dims}}
    %y = nn.reshape %x {dist.seed = #dist.seed<"[8@tp, 3]", priority = 0, origin = "sidecar">} : tensor<6x4xf32> -> tensor<8x3xf32>
    return %y : tensor<8x3xf32>
  }
}

// -----

// A seed that names an axis which the mesh lacks.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    // expected-error@below {{[sidecar] w: sharding '[6@row, 6]': the mesh 'tp=2:tensor' has no axis 'row'}}
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x6xf32>, dist.seed = #dist.sharding<"[6@row, 6]">} : tensor<6x6xf32>
    %y = nn.matmul %x, %w : tensor<4x6xf32>, tensor<6x6xf32> -> tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}

// -----

// A seed that does not multiply to the dim.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    // expected-error@below {{[sidecar] w: sharding '[(2@tp, 4), 6]': the sub-dims of dim 0 multiply to 8, the tensor's dim is 6}}
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x6xf32>, dist.seed = #dist.sharding<"[(2@tp, 4), 6]">} : tensor<6x6xf32>
    %y = nn.matmul %x, %w : tensor<4x6xf32>, tensor<6x6xf32> -> tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}

// -----

// A seed cannot ask for a partial sum.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  // expected-error@below {{[sidecar] input 0: sharding '[4, 6] partial{tp}': a seed cannot be partial}}
  func.func @main(%x: tensor<4x6xf32> {dist.seed = #dist.sharding<"[4, 6] partial{tp}">}) -> tensor<4x6xf32> {
    return %x : tensor<4x6xf32>
  }
}

// -----

// A seed that the op cannot follow is said, not silently dropped: 6 heads by threes do not nest with 2 groups.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<6x4xf32>) -> tensor<8x3xf32> {
    // expected-remark@below {{the op cannot compute dim 0 cut 8@tp as the seed asks}}
    %y = nn.reshape %x {dist.seed = #dist.sharding<"[8@tp, 3]">} : tensor<6x4xf32> -> tensor<8x3xf32>
    return %y : tensor<8x3xf32>
  }
}

// -----

// Blocks that repeat do not repeat what is said of them: it is said at the first, with the number of the others.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<6x4xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<4x6xf32>) {
    // expected-remark@below {{the op cannot compute dim 0 cut 8@tp as the seed asks (view); it stays as its operands have it; the same at 2 more ops}}
    %y = nn.reshape %x {dist.seed = #dist.sharding<"[8@tp, 3]">} : tensor<6x4xf32> -> tensor<8x3xf32>
    %z = nn.reshape %x {dist.seed = #dist.sharding<"[8@tp, 3]">} : tensor<6x4xf32> -> tensor<8x3xf32>
    %u = nn.reshape %x {dist.seed = #dist.sharding<"[8@tp, 3]">} : tensor<6x4xf32> -> tensor<8x3xf32>
    // expected-remark@below {{the op cannot compute dim 0 cut 4@tp as the seed asks}}
    %v = nn.reshape %x {dist.seed = #dist.sharding<"[4@tp, 6]">} : tensor<6x4xf32> -> tensor<4x6xf32>
    return %y, %z, %u, %v : tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<4x6xf32>
  }
}

// -----

// A conflict that moves data is reported with its bytes.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[4, 6@tp]">} : tensor<4x6xf32> -> tensor<4x6xf32>
    // expected-remark@below {{operand 0 is [4, 6@tp], the op needs [4, 6]: 48 bytes are moved to every rank}}
    %y = nn.softmax %a : tensor<4x6xf32> -> tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}
