// RUN: hpc-opt %s --hpc-make-schedule -verify-diagnostics

// There is nothing to put in order; a schedule of nothing would let lower take the function for a staged one.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=1:tensor">} {
  // expected-error @below {{[model] @main has no stages that a schedule could run; run hpc-split-stages first}}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}
