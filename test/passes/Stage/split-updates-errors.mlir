// RUN: hpc-opt %s --hpc-split-updates --split-input-file -verify-diagnostics

// Another stage would get the sum in every micro-batch, before it is complete.
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%x: tensor<2xf32, #dist.sharding<"[4@mb]">>) -> tensor<1xf32, #dist.sharding<"[1]">> {
    %0 = pipe.stage 0 forward (%x) : (tensor<2xf32, #dist.sharding<"[4@mb]">>) -> tensor<1xf32, #dist.sharding<"[1]">> {
    ^bb0(%a: tensor<2xf32, #dist.sharding<"[4@mb]">>):
      %s = nn.reduce sum %a {axes = array<i64: 0>} : tensor<2xf32, #dist.sharding<"[4@mb]">> -> tensor<1xf32, #dist.sharding<"[1] partial{mb}">>
      // expected-error@below {{[unsupported] a sum over all micro-batches, of '', is read by another stage; use --pp=1}}
      %g = dist.accumulate %s {axes = ["mb"], before = #dist.sharding<"[1] partial{mb}">, after = #dist.sharding<"[1]">} : tensor<1xf32, #dist.sharding<"[1] partial{mb}">> -> tensor<1xf32, #dist.sharding<"[1]">>
      pipe.yield %g : tensor<1xf32, #dist.sharding<"[1]">>
    }
    %1 = pipe.transfer %0 {from = 0 : i64, to = 1 : i64} : tensor<1xf32, #dist.sharding<"[1]">> -> tensor<1xf32, #dist.sharding<"[1]">>
    %2 = pipe.stage 1 forward (%1) : (tensor<1xf32, #dist.sharding<"[1]">>) -> tensor<1xf32, #dist.sharding<"[1]">> {
    ^bb0(%a: tensor<1xf32, #dist.sharding<"[1]">>):
      %n = nn.neg %a : tensor<1xf32, #dist.sharding<"[1]">> -> tensor<1xf32, #dist.sharding<"[1]">>
      pipe.yield %n : tensor<1xf32, #dist.sharding<"[1]">>
    }
    return %2 : tensor<1xf32, #dist.sharding<"[1]">>
  }
}
