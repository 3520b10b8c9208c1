// RUN: hpc-opt %s -o %t.plan && hpc-plan %t.plan | FileCheck %s

// Two stages, two micro-batches, 5 heads of 8 over tp=2. If one of these lines changes, ranks hold, compute or send something else.

// A weight's slice is by heads, its padding part of the box.
// CHECK: weight w: f32[40, 3] -> b1, dim 0 0..2 | 3..4 of 5 (box 3) of view [5, 8, 3]
// The micro-batch chooses the rows, the coordinate the heads.
// CHECK: program forward:
// CHECK-NEXT: load b0 = input x: dim 0 0..1 / 2..3 of 4, dim 1 0..2 | 3..4 of 5 (box 3)
// fill_tail is no instruction: rank 1 contracts 16 columns, not 24.
// CHECK-NEXT: gemm b2 = b0 * packed b1, m 2, n 3, k 24 | 16
// What is sent lies in a slot.
// CHECK-NEXT: all_reduce b3 = b2 over {tp} sum, 6 x f32 (24 bytes), because the sum
// CHECK-NEXT: send b3, 24 bytes to rank 2 | 3
// CHECK: program drain:
// CHECK-NEXT: wait request 0
// CHECK: program receive:
// CHECK-NEXT: recv b0, 24 bytes from rank 0 | 1
// One replica owns the output.
// CHECK: store output y = b1: rows 0..1 / 2..3 of 4, owner 1 | 0
// CHECK: stage 1 runs RF0 RF1 F0 F1

module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=2:tensor">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x24xf32, #dist.sharding<"[4@mb, (5@tp, 8)]">> {nn.name = "x"}) -> (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {nn.name = "y"}) attributes {pipe.schedule = ["F0 F1 DF0 DF1", "RF0 RF1 F0 F1"]} {
    %0 = pipe.stage 0 forward(%x) : (tensor<2x24xf32, #dist.sharding<"[4@mb, (5@tp, 8)]">>) -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {
    ^bb0(%a: tensor<2x24xf32, #dist.sharding<"[4@mb, (5@tp, 8)]">>):
      %w = nn.parameter "w" {value = dense<1.0> : tensor<40x3xf32>} : tensor<24x3xf32, #dist.sharding<"[(5@tp, 8), 3]">>
      %f = dist.fill_tail %a {dims = array<i64: 1>, value = 0.0 : f32} : tensor<2x24xf32, #dist.sharding<"[4@mb, (5@tp, 8)]">> -> tensor<2x24xf32, #dist.sharding<"[4@mb, (5@tp, 8)]">>
      %m = nn.matmul %f, %w : tensor<2x24xf32, #dist.sharding<"[4@mb, (5@tp, 8)]">>, tensor<24x3xf32, #dist.sharding<"[(5@tp, 8), 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3] partial{tp}">>
      %r = dist.all_reduce %m {axes = ["tp"], kind = #dist<reduce_kind sum>, before = #dist.sharding<"[4@mb, 3] partial{tp}">, after = #dist.sharding<"[4@mb, 3]">, cause = "the sum"} : tensor<2x3xf32, #dist.sharding<"[4@mb, 3] partial{tp}">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
      pipe.yield %r : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    }
    %1 = pipe.transfer %0 {from = 0 : i64, to = 1 : i64} : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    %2 = pipe.stage 1 forward(%1) : (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>):
      %g = nn.tanh %a : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
      pipe.yield %g : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    }
    return %2 : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
  }
}
