// RUN: hpc-opt %s --hpc-split-stages="stages=1" --split-input-file -verify-diagnostics
// RUN: not hpc-opt %s --hpc-split-stages="schedule=./none.txt" 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not hpc-opt %s --hpc-split-stages="schedule=fastest" 2>&1 | FileCheck %s --check-prefix=NAME

// A schedule that cannot be read says so before anything is cut by it.
// FILE: [io] --pp-schedule=./none.txt: {{.*}}none.txt
// NAME: [usage] --pp-schedule=fastest: schedule 'fastest' is not known; there are inference, gpipe, 1f1b, interleaved, zb-h1, and files

// Statistics of the whole batch are known after the last micro-batch; the rows that they scale are gone by then.
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%x: tensor<2xf32, #dist.sharding<"[4@mb]">>) -> tensor<2xf32, #dist.sharding<"[4@mb]">> {
    %s = nn.reduce sum %x {axes = array<i64: 0>} : tensor<2xf32, #dist.sharding<"[4@mb]">> -> tensor<1xf32, #dist.sharding<"[1] partial{mb}">>
    %g = dist.accumulate %s {axes = ["mb"], before = #dist.sharding<"[1] partial{mb}">, after = #dist.sharding<"[1]">} : tensor<1xf32, #dist.sharding<"[1] partial{mb}">> -> tensor<1xf32, #dist.sharding<"[1]">>
    // expected-error@below {{[unsupported] nn.sub reads a sum over all micro-batches or belongs to the update, which run once a step, and an input, of which each micro-batch has its own; use --micro-batches=1}}
    %c = nn.sub %x, %g : tensor<2xf32, #dist.sharding<"[4@mb]">>, tensor<1xf32, #dist.sharding<"[1]">> -> tensor<2xf32, #dist.sharding<"[4@mb]">>
    return %c : tensor<2xf32, #dist.sharding<"[4@mb]">>
  }
}
