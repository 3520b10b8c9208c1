// RUN: hpc-opt %s -split-input-file --hpc-write-in-place | FileCheck %s

// The rows of a table that ids name are added to the sum over micro-batches where it lies; otherwise each micro-batch would write a tensor as large as the table
// and add it. A view between them changes nothing.
// CHECK-LABEL: @main
// CHECK: nn.fused "rows_0_adding"(%{{.*}}, %{{.*}}) {adds_over = "mb"}
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%g: tensor<3x5xf32, #dist.sharding<"[6@mb, 5]">>, %ids: tensor<3xi64, #dist.sharding<"[6@mb]">>) -> tensor<35xf32, #dist.sharding<"[35]">> {
    %r = nn.fused "rows_0" (%g, %ids) : (tensor<3x5xf32, #dist.sharding<"[6@mb, 5]">>, tensor<3xi64, #dist.sharding<"[6@mb]">>) -> tensor<7x5xf32, #dist.sharding<"[7, 5] partial{mb}">> {
    ^bb0(%a: tensor<3x5xf32, #dist.sharding<"[6@mb, 5]">>, %b: tensor<3xi64, #dist.sharding<"[6@mb]">>):
      %0 = nn.embedding_grad %a, %b {vocabulary = 7 : i64} : tensor<3x5xf32, #dist.sharding<"[6@mb, 5]">>, tensor<3xi64, #dist.sharding<"[6@mb]">> -> tensor<7x5xf32, #dist.sharding<"[7, 5] partial{mb}">>
      nn.yield %0 : tensor<7x5xf32, #dist.sharding<"[7, 5] partial{mb}">>
    }
    %v = nn.reshape %r : tensor<7x5xf32, #dist.sharding<"[7, 5] partial{mb}">> -> tensor<35xf32, #dist.sharding<"[35] partial{mb}">>
    %s = dist.accumulate %v {axes = ["mb"], before = #dist.sharding<"[35] partial{mb}">, after = #dist.sharding<"[35]">} : tensor<35xf32, #dist.sharding<"[35] partial{mb}">> -> tensor<35xf32, #dist.sharding<"[35]">>
    return %s : tensor<35xf32, #dist.sharding<"[35]">>
  }
}

// -----

// A term that somebody else reads has to be there by itself; what makes all of its elements anew gains nothing.
// CHECK-LABEL: @main
// CHECK: nn.fused "rows_0"(
// CHECK-NOT: adds_over
// CHECK: nn.fused "exp_0"(
// CHECK-NOT: adds_over
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%g: tensor<3x5xf32, #dist.sharding<"[6@mb, 5]">>, %ids: tensor<3xi64, #dist.sharding<"[6@mb]">>, %x: tensor<4xf32, #dist.sharding<"[4] partial{mb}">>)
      -> (tensor<7x5xf32, #dist.sharding<"[7, 5]">>, tensor<7x5xf32, #dist.sharding<"[7, 5] partial{mb}">>, tensor<4xf32, #dist.sharding<"[4]">>) {
    %r = nn.fused "rows_0" (%g, %ids) : (tensor<3x5xf32, #dist.sharding<"[6@mb, 5]">>, tensor<3xi64, #dist.sharding<"[6@mb]">>) -> tensor<7x5xf32, #dist.sharding<"[7, 5] partial{mb}">> {
    ^bb0(%a: tensor<3x5xf32, #dist.sharding<"[6@mb, 5]">>, %b: tensor<3xi64, #dist.sharding<"[6@mb]">>):
      %0 = nn.embedding_grad %a, %b {vocabulary = 7 : i64} : tensor<3x5xf32, #dist.sharding<"[6@mb, 5]">>, tensor<3xi64, #dist.sharding<"[6@mb]">> -> tensor<7x5xf32, #dist.sharding<"[7, 5] partial{mb}">>
      nn.yield %0 : tensor<7x5xf32, #dist.sharding<"[7, 5] partial{mb}">>
    }
    %s = dist.accumulate %r {axes = ["mb"], before = #dist.sharding<"[7, 5] partial{mb}">, after = #dist.sharding<"[7, 5]">} : tensor<7x5xf32, #dist.sharding<"[7, 5] partial{mb}">> -> tensor<7x5xf32, #dist.sharding<"[7, 5]">>
    %e = nn.fused "exp_0" (%x) : (tensor<4xf32, #dist.sharding<"[4] partial{mb}">>) -> tensor<4xf32, #dist.sharding<"[4] partial{mb}">> {
    ^bb0(%a: tensor<4xf32, #dist.sharding<"[4] partial{mb}">>):
      %0 = nn.neg %a : tensor<4xf32, #dist.sharding<"[4] partial{mb}">> -> tensor<4xf32, #dist.sharding<"[4] partial{mb}">>
      nn.yield %0 : tensor<4xf32, #dist.sharding<"[4] partial{mb}">>
    }
    %t = dist.accumulate %e {axes = ["mb"], before = #dist.sharding<"[4] partial{mb}">, after = #dist.sharding<"[4]">} : tensor<4xf32, #dist.sharding<"[4] partial{mb}">> -> tensor<4xf32, #dist.sharding<"[4]">>
    return %s, %r, %t : tensor<7x5xf32, #dist.sharding<"[7, 5]">>, tensor<7x5xf32, #dist.sharding<"[7, 5] partial{mb}">>, tensor<4xf32, #dist.sharding<"[4]">>
  }
}
