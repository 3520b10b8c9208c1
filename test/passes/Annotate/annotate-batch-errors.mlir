// RUN: hpc-opt %s --hpc-annotate-batch --split-input-file -verify-diagnostics

// Micro-batches must be equal: the schedule runs one program for all.
module attributes {dist.mesh = #dist.mesh<"mb=3, dp=1, tp=1">} {
  // expected-error @below {{[usage] --micro-batches=3 does not divide the batch of 4 (dim 0 of input 'ids'); use a divisor of it}}
  func.func @main(%a: tensor<4x33xi64> {nn.dims = ["batch_size", "seq"], nn.name = "ids"}) -> tensor<4x33xi64> {
    return %a : tensor<4x33xi64>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"mb=2, dp=1, tp=1">} {
  // expected-error @below {{[usage] --micro-batches=2 needs a batch dim, and no input has a dim; use --micro-batches=1}}
  func.func @main(%a: tensor<f32>) -> tensor<f32> {
    return %a : tensor<f32>
  }
}
