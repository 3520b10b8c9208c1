// RUN: hpc-opt %s --hpc-split-stages --hpc-make-schedule --hpc-verify-staged --split-input-file | FileCheck %s

// The accumulation stays in forward, since every micro-batch adds its term; what it feeds goes to the update. The weight that both read
// is in both; the scalar that only the update reads is no operand of forward.
// CHECK-LABEL: func.func @main
// CHECK: %[[F:.*]]:2 = pipe.stage 0 forward(%arg0)
// CHECK: nn.parameter "w"
// CHECK: %[[Y:.*]] = nn.mul
// CHECK: %[[S:.*]] = dist.accumulate
// CHECK-NOT: nn.sub
// CHECK: pipe.yield %[[S]], %[[Y]]
// CHECK: %[[U:.*]] = pipe.stage 0 update(%arg1, %[[F]]#0)
// CHECK: nn.parameter "w"
// CHECK-NOT: nn.reduce
// CHECK: nn.mul
// CHECK: nn.sub
// CHECK: return %[[F]]#1, %[[U]]
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%x: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, %lr: tensor<f32, #dist.sharding<"[]">> {nn.step_scalar = "lr"})
      -> (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">> {nn.writes = "w"}) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<1x3xf32>} : tensor<1x3xf32, #dist.sharding<"[1, 3]">>
    %y = nn.mul %x, %w : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    %s = nn.reduce sum %y {axes = array<i64: 0>} : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<1x3xf32, #dist.sharding<"[1, 3] partial{mb}">>
    %g = dist.accumulate %s {axes = ["mb"], before = #dist.sharding<"[1, 3] partial{mb}">, after = #dist.sharding<"[1, 3]">} : tensor<1x3xf32, #dist.sharding<"[1, 3] partial{mb}">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
    %d = nn.mul %g, %lr : tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<f32, #dist.sharding<"[]">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
    %n = nn.sub %w, %d : tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
    return %y, %n : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">>
  }
}

// -----

// What is written but depends on no accumulation is written once a step too: in every micro-batch the next would read it.
// CHECK-LABEL: func.func @main
// CHECK: pipe.stage 0 forward(%arg0, %arg1)
// CHECK: nn.add
// CHECK: pipe.stage 0 update(%arg1)
// CHECK: nn.neg
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%x: tensor<2xf32, #dist.sharding<"[4@mb]">>, %m: tensor<1xf32, #dist.sharding<"[1]">> {nn.state = "m"})
      -> (tensor<2xf32, #dist.sharding<"[4@mb]">>, tensor<1xf32, #dist.sharding<"[1]">> {nn.writes = "m"}) {
    %y = nn.add %x, %m : tensor<2xf32, #dist.sharding<"[4@mb]">>, tensor<1xf32, #dist.sharding<"[1]">> -> tensor<2xf32, #dist.sharding<"[4@mb]">>
    %n = nn.neg %m : tensor<1xf32, #dist.sharding<"[1]">> -> tensor<1xf32, #dist.sharding<"[1]">>
    return %y, %n : tensor<2xf32, #dist.sharding<"[4@mb]">>, tensor<1xf32, #dist.sharding<"[1]">>
  }
}

// -----

// With one micro-batch there is nothing to split.
// CHECK-LABEL: func.func @main
// CHECK: pipe.stage 0 forward
// CHECK-NOT: update
module attributes {dist.mesh = #dist.mesh<"mb=1:time">} {
  func.func @main(%m: tensor<1xf32, #dist.sharding<"[1]">> {nn.state = "m"}) -> (tensor<1xf32, #dist.sharding<"[1]">> {nn.writes = "m"}) {
    %n = nn.neg %m : tensor<1xf32, #dist.sharding<"[1]">> -> tensor<1xf32, #dist.sharding<"[1]">>
    return %n : tensor<1xf32, #dist.sharding<"[1]">>
  }
}
