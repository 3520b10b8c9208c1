// RUN: hpc-opt %s -split-input-file -verify-diagnostics --hpc-propagate-shardings --hpc-insert-reshards

// A running sum along the batch needs all micro-batches at once.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, tp=2:tensor">} {
  func.func @main(%x: tensor<4x6xf32> {dist.seed = #dist.sharding<"[4@mb, 6]">}) -> tensor<4x6xf32> {
    // expected-remark@below {{operand 0 is [4@mb, 6], the op needs [4, 6]}}
    // expected-error@below {{[unsupported] nn.cumsum needs [4, 6] of a value that is [4@mb, 6]: micro-batches come one after the other}}
    %y = nn.cumsum %x {axis = 0 : i64} : tensor<4x6xf32> -> tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}
