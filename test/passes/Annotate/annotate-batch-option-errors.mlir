// RUN: hpc-opt %s --hpc-annotate-batch="batch-dim=rows" -verify-diagnostics

// A name that fits nothing lists those that exist.
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=1:tensor">} {
  // expected-error @below {{[usage] --batch-dim=rows names no dim of an input; the inputs have batch_size, seq}}
  func.func @main(%a: tensor<4x33xi64> {nn.dims = ["batch_size", "seq"], nn.name = "ids"}) -> tensor<4x33xi64> {
    return %a : tensor<4x33xi64>
  }
}
