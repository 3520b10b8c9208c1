// RUN: not hpc-opt %s -o %t.plan 2>&1 | FileCheck %s
// RUN: not test -e %t.plan

// What each micro-batch makes anew cannot be read once a step: the update would see the last one's.
// CHECK: error[unsupported]: value of ONNX node 'late' is made in each micro-batch and read once a step, but is no sum over micro-batches; use --micro-batches=1
module attributes {dist.mesh = #dist.mesh<"mb=2:time">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {nn.name = "x"}) -> (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {nn.name = "y"}) attributes {pipe.schedule = ["F0 F1 U"]} {
    %0 = pipe.stage 0 forward (%x) : (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>):
      %t = nn.tanh %a : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> loc("late")
      pipe.yield %t : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    }
    %1 = pipe.stage 0 update (%0) : (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>):
      %t = nn.tanh %a : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
      pipe.yield %t : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    }
    return %1 : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
  }
}
