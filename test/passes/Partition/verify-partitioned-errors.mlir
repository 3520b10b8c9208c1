// RUN: hpc-opt %s -split-input-file -verify-diagnostics --hpc-verify-partitioned

// A partial sum where a complete value is needed: the all-reduce is missing.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4xf32, #dist.sharding<"[4]">>) -> tensor<4xf32, #dist.sharding<"[4]">> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<2x4xf32>} : tensor<2x2xf32, #dist.sharding<"[2, 4@tp]">>
    %s = nn.reduce sum %w {axes = array<i64: 1>} : tensor<2x2xf32, #dist.sharding<"[2, 4@tp]">> -> tensor<2x1xf32, #dist.sharding<"[2, 1] partial{tp}">>
    // expected-error@below {{[internal] nn.exp: operand 0 is partial over {tp}, the op takes it partial over {}; a collective is missing, doubled or over the wrong axis}}
    %e = nn.exp %s : tensor<2x1xf32, #dist.sharding<"[2, 1] partial{tp}">> -> tensor<2x1xf32, #dist.sharding<"[2, 1]">>
    return %x : tensor<4xf32, #dist.sharding<"[4]">>
  }
}

// -----

// Padding that a sum reads must be filled.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4xf32, #dist.sharding<"[7@tp]">>) -> tensor<1xf32, #dist.sharding<"[1]">> {
    %e = nn.exp %x : tensor<4xf32, #dist.sharding<"[7@tp]">> -> tensor<4xf32, #dist.sharding<"[7@tp]">>
    // expected-error@below {{nn.reduce: reduces over padding of operand 0 ([7@tp]), which dist.fill_tail must set to 0}}
    %s = nn.reduce sum %e {axes = array<i64: 0>} : tensor<4xf32, #dist.sharding<"[7@tp]">> -> tensor<1xf32, #dist.sharding<"[1] partial{tp}">>
    %r = dist.all_reduce %s {after = #dist.sharding<"[1]">, axes = ["tp"], before = #dist.sharding<"[1] partial{tp}">, kind = #dist<reduce_kind sum>} : tensor<1xf32, #dist.sharding<"[1] partial{tp}">> -> tensor<1xf32, #dist.sharding<"[1]">>
    return %r : tensor<1xf32, #dist.sharding<"[1]">>
  }
}

// -----

// Global shapes have no place here.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  // expected-error@below {{does not have the shape of its local box, 'tensor<2xf32>'}}
  func.func @main(%x: tensor<4xf32, #dist.sharding<"[4@tp]">>) -> tensor<4xf32, #dist.sharding<"[4@tp]">> {
    return %x : tensor<4xf32, #dist.sharding<"[4@tp]">>
  }
}

// -----

// Cut along different factors: data would have to cross ranks without a collective.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x4xf32, #dist.sharding<"[4@tp, 4]">>, %y: tensor<4x2xf32, #dist.sharding<"[4, 4@tp]">>) -> tensor<2x4xf32, #dist.sharding<"[4@tp, 4]">> {
    // expected-error@below {{(C1) operand shapes do not broadcast}}
    %s = nn.add %x, %y : tensor<2x4xf32, #dist.sharding<"[4@tp, 4]">>, tensor<4x2xf32, #dist.sharding<"[4, 4@tp]">> -> tensor<2x4xf32, #dist.sharding<"[4@tp, 4]">>
    return %s : tensor<2x4xf32, #dist.sharding<"[4@tp, 4]">>
  }
}

// -----

// The same boxes, other elements: 8@tp holds 0..3, (2, 4@tp) holds 0, 1, 4, 5.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4xf32, #dist.sharding<"[8@tp]">>, %y: tensor<4xf32, #dist.sharding<"[(2, 4@tp)]">>) -> tensor<4xf32, #dist.sharding<"[8@tp]">> {
    // expected-error@below {{nn.add: operand 1 dim 0, cut (2, 4@tp), differs from the cut 8@tp that another dim of the same factor has}}
    %s = nn.add %x, %y : tensor<4xf32, #dist.sharding<"[8@tp]">>, tensor<4xf32, #dist.sharding<"[(2, 4@tp)]">> -> tensor<4xf32, #dist.sharding<"[8@tp]">>
    return %s : tensor<4xf32, #dist.sharding<"[8@tp]">>
  }
}

// -----

// What a sum over all micro-batches gives is not there while they run.
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%x: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {
    %s = nn.reduce sum %x {axes = array<i64: 0>} : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<1x3xf32, #dist.sharding<"[1, 3] partial{mb}">>
    %a = dist.accumulate %s {axes = ["mb"], before = #dist.sharding<"[1, 3] partial{mb}">, after = #dist.sharding<"[1, 3]">} : tensor<1x3xf32, #dist.sharding<"[1, 3] partial{mb}">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
    // expected-error@below {{nn.sub: reads in every micro-batch what depends on a sum over all of them}}
    %y = nn.sub %x, %a : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    return %y : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
  }
}

// -----

// An all-reduce over time would wait for a micro-batch that has not begun.
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%x: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>) -> tensor<1x3xf32, #dist.sharding<"[1, 3]">> {
    %s = nn.reduce sum %x {axes = array<i64: 0>} : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<1x3xf32, #dist.sharding<"[1, 3] partial{mb}">>
    // expected-error@below {{works over 'mb', along which data cannot move}}
    %a = dist.all_reduce %s {axes = ["mb"], kind = #dist<reduce_kind sum>, before = #dist.sharding<"[1, 3] partial{mb}">, after = #dist.sharding<"[1, 3]">} : tensor<1x3xf32, #dist.sharding<"[1, 3] partial{mb}">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
    return %a : tensor<1x3xf32, #dist.sharding<"[1, 3]">>
  }
}

// -----

// Cut queries of a causal attention see keys by their own positions: without the rank's offset each rank would begin at the first key.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%q: tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>, %k: tensor<1x2x7x8xf32, #dist.sharding<"[1, 2, 7, 8]">>) -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">> {
    // expected-error@below {{[internal] nn.attention: reads 1 cut coordinates, but has 0 offsets}}
    %0 = nn.attention %q, %k, %k {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>, tensor<1x2x7x8xf32, #dist.sharding<"[1, 2, 7, 8]">>,
        tensor<1x2x7x8xf32, #dist.sharding<"[1, 2, 7, 8]">> -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>
    return %0 : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>
  }
}

// -----

// The offset of another cut, or another number in its place.
module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=2:tensor">} {
  func.func @main(%q: tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>, %k: tensor<1x2x7x8xf32, #dist.sharding<"[1, 2, 7, 8]">>) -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">> {
    %o = dist.offset {dim = #dist.sharding<"[7@dp]">} : tensor<i64, #dist.sharding<"[]">>
    // expected-error@below {{[internal] nn.attention: reads coordinates cut 7@tp with the offset of [7@dp]}}
    %0 = nn.attention %q, %k, %k query_start %o : tensor<i64, #dist.sharding<"[]">> {scale = 0.5 : f64, causal_offset = 0 : i64, hpc.global = {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0>}}
        : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>, tensor<1x2x7x8xf32, #dist.sharding<"[1, 2, 7, 8]">>, tensor<1x2x7x8xf32, #dist.sharding<"[1, 2, 7, 8]">> -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>
    return %0 : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>
  }
}

// -----

// Dropout and the mask read one position: two of them would be two cuts.
module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=2:tensor">} {
  func.func @main(%q: tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>, %k: tensor<1x2x7x8xf32, #dist.sharding<"[1, 2, 7, 8]">>, %s: tensor<i64, #dist.sharding<"[]">>) -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">> {
    %o = dist.offset {dim = #dist.sharding<"[7@tp]">} : tensor<i64, #dist.sharding<"[]">>
    // expected-error@below {{[internal] nn.attention: reads 1 cut coordinates, but has 2 offsets}}
    %0 = nn.attention %q, %k, %k dropout %s, %s, %o : tensor<i64, #dist.sharding<"[]">>, tensor<i64, #dist.sharding<"[]">>, tensor<i64, #dist.sharding<"[]">> query_start %s : tensor<i64, #dist.sharding<"[]">>
        {scale = 0.5 : f64, causal_offset = 0 : i64, site = 1 : i64, rate = 0.5 : f64, global_shape = array<i64: 1, 2, 1, 7, 7>, offset_dims = array<i64: 3>, hpc.global = {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 2, 0, 0, 0, 0>}}
        : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>, tensor<1x2x7x8xf32, #dist.sharding<"[1, 2, 7, 8]">>, tensor<1x2x7x8xf32, #dist.sharding<"[1, 2, 7, 8]">> -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>
    return %0 : tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>
  }
}
