// RUN: hpc-opt %s --hpc-annotate-batch --split-input-file -verify-diagnostics

// Micro-batches must be equal: the schedule runs one program for all.
module attributes {dist.mesh = #dist.mesh<"mb=3:time, dp=1:data, tp=1:tensor">} {
  // expected-error @below {{[usage] --micro-batches=3 does not divide the batch of 4 (dim 0 of input 'ids'); use a divisor of it; without --batch-dim=NAME the batch is dim 0, batch_size, of 'ids': where it is none, name the dim that is}}
  func.func @main(%a: tensor<4x33xi64> {nn.dims = ["batch_size", "seq"], nn.name = "ids"}) -> tensor<4x33xi64> {
    return %a : tensor<4x33xi64>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=1:tensor">} {
  // expected-error @below {{[usage] --micro-batches=2 needs a batch dim, and no input has a dim; use --micro-batches=1}}
  func.func @main(%a: tensor<f32>) -> tensor<f32> {
    return %a : tensor<f32>
  }
}

// -----

// The micro-batches are parts of the major sub-dim that the user wrote.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=2:tensor">} {
  // expected-error @below {{[usage] --micro-batches=2 does not divide the batch of 6 (dim 0 of input '?', seeded [(3, 2@tp)]); use a divisor of 3}}
  func.func @main(%a: tensor<6xf32> {dist.seed = #dist.seed<"[(3, 2@tp)]", origin = "sidecar">}) -> tensor<6xf32> {
    return %a : tensor<6xf32>
  }
}

// -----

// A damaged file: sizes that are not known killed the compiler.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=2:tensor">} {
  // expected-error @below {{[model] argument 0 of @main has type 'tensor<?x4xf32>'; programs take tensors of fixed sizes}}
  func.func @main(%a: tensor<?x4xf32>) {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=2:tensor">} {
  // expected-error @below {{[model] argument 0 of @main has type 'i64'; programs take tensors of fixed sizes}}
  func.func @main(%a: i64) {
    return
  }
}

// -----

// A state with the rows of the batch that is no cache.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=1:tensor">} {
  // expected-error @below {{[unsupported] --micro-batches=2: state 'rows' has the rows of the batch, and a stage holds it once, not once a micro-batch; use --micro-batches=1}}
  func.func @main(%rows: tensor<4x2x8xf32>, %cache: tensor<4x6x8xf32> {nn.state = "rows"}, %position: tensor<i64> {nn.step_scalar = "position", nn.largest = 4 : i64})
      -> (tensor<4x6x8xf32> {nn.writes = "rows"}) {
    %next = nn.update_slice %cache, %rows, %position {dim = 1 : i64} : tensor<4x6x8xf32>, tensor<4x2x8xf32>, tensor<i64> -> tensor<4x6x8xf32>
    return %next : tensor<4x6x8xf32>
  }
}
