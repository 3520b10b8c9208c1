// RUN: hpc-opt %s -split-input-file -verify-diagnostics

// Only time is accumulated: over ranks it would leave out what the others hold.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data">} {
  func.func @main(%x: tensor<4xf32, #dist.sharding<"[4] partial{dp}">>) {
    // expected-error@below {{(C2) adds up over 'dp', which must be an axis of time over which the operand is partial}}
    %0 = dist.accumulate %x {axes = ["dp"], before = #dist.sharding<"[4] partial{dp}">, after = #dist.sharding<"[4]">} : tensor<4xf32, #dist.sharding<"[4] partial{dp}">> -> tensor<4xf32, #dist.sharding<"[4]">>
    return
  }
}

// -----

// What is complete would be added up once for every micro-batch.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data">} {
  func.func @main(%x: tensor<4xf32, #dist.sharding<"[4]">>) {
    // expected-error@below {{(C2) adds up over 'mb'}}
    %0 = dist.accumulate %x {axes = ["mb"], before = #dist.sharding<"[4]">, after = #dist.sharding<"[4]">} : tensor<4xf32, #dist.sharding<"[4]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    return
  }
}

// -----

// Another type's number in the padding is another number.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<3xi64, #dist.sharding<"[5@tp]">>) {
    // expected-error@below {{(C1) value 0.000000e+00 : f64 must be a number of the element type 'i64'}}
    %0 = dist.fill_tail %x {dims = array<i64: 0>, value = 0.0 : f64} : tensor<3xi64, #dist.sharding<"[5@tp]">> -> tensor<3xi64, #dist.sharding<"[5@tp]">>
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<3xf32, #dist.sharding<"[5@tp]">>) {
    // expected-error@below {{(C2) dim 1 is no dim of}}
    %0 = dist.fill_tail %x {dims = array<i64: 1>, value = 0.0 : f32} : tensor<3xf32, #dist.sharding<"[5@tp]">> -> tensor<3xf32, #dist.sharding<"[5@tp]">>
    return
  }
}

// -----

// No role is guessed from a name.
// expected-error@below {{mesh 'mb=2, tp=2': axis 'mb' needs a role: time, data, tensor, sequence or pipeline at column 5; write it like 'mb=2:time, dp=1:data, tp=2:tensor'}}
module attributes {dist.mesh = #dist.mesh<"mb=2, tp=2">} {
}

// -----

// Products that wrap around are not taken for the small number that they wrap to.
// expected-error@below {{the sub-dims of a dim multiply to more than 2^63 - 1}}
#s = #dist.sharding<"[(7, 2635249153387078808@tp)]">

// -----

// expected-error@below {{a dim that the seed cuts is closed}}
#t = #dist.seed<"[4@tp?]">
