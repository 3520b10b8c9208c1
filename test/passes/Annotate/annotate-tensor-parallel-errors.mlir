// RUN: hpc-opt %s --hpc-annotate-tensor-parallel="layout=4d" -verify-diagnostics

// A name that is no strategy lists those that are.
// expected-error @below {{[usage] --tp-layout=4d is unknown; layouts are 1d, 2d, 2.5d, 3d, those of several axes also with their sizes, as 2d:2x3}}
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%a: tensor<4x33xf32>) -> tensor<4x33xf32> {
    return %a : tensor<4x33xf32>
  }
}
