// RUN: hpc-opt %s --hpc-annotate-batch --split-input-file | FileCheck %s

// The dim named batch... is cut, wherever it stands, micro-batches outside of dp; other inputs and dims of the same size stay whole.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x33xi64> {dist.seed = #dist.seed<"[4@(mb, dp), 33?]">
// CHECK-SAME: tensor<33x4xf32> {dist.seed = #dist.seed<"[33?, 4@(mb, dp)]">
// CHECK-SAME: tensor<4x4xf32> {nn.dims
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data, tp=1:tensor">} {
  func.func @main(%a: tensor<4x33xi64> {nn.dims = ["batch_size", "seq"]}, %b: tensor<33x4xf32> {nn.dims = ["seq", "batch_size"]},
                  %c: tensor<4x4xf32> {nn.dims = ["heads", "4"]}) -> tensor<4x4xf32> {
    return %c : tensor<4x4xf32>
  }
}

// -----

// No names: dim 0, of the inputs whose dim 0 has one size. An axis of size 1 is left out of the seed.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x3xf32> {dist.seed = #dist.seed<"[4@dp, 3?]">}
// CHECK-SAME: tensor<4xi64> {dist.seed = #dist.seed<"[4@dp]">}
// CHECK-SAME: %{{[^:]*}}: tensor<3xf32>, %{{[^:]*}}: tensor<f32>)
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=2:tensor">} {
  func.func @main(%a: tensor<4x3xf32>, %b: tensor<4xi64>, %c: tensor<3xf32>, %d: tensor<f32>) -> tensor<f32> {
    return %d : tensor<f32>
  }
}

// -----

// dp above the batch is legal (ranks with nothing), a batch of 1 has nothing to cut.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<3x2xf32> {dist.seed = #dist.seed<"[3@dp, 2?]">}
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=5:data, tp=1:tensor">} {
  func.func @main(%a: tensor<3x2xf32>) -> tensor<3x2xf32> {
    return %a : tensor<3x2xf32>
  }
}

// -----

// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.seed
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=1:tensor">} {
  func.func @main(%a: tensor<1x48xi64> {nn.dims = ["batch_size", "seq"]}) -> tensor<1x48xi64> {
    return %a : tensor<1x48xi64>
  }
}

// -----

// What the user seeds on an input is cut inside of the batch's axes: dp cuts the batch, each rank's part over the user's
// axis; a dim that the user closes stays closed, and a user's batch of sub-dims is cut at the major one.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: dist.seed = #dist.seed<"[8@(mb, dp, tp), 33]", priority = 0, origin = "sidecar">
// CHECK-SAME: dist.seed = #dist.seed<"[8@(mb, dp), 33@tp]", priority = -3, origin = "sidecar">
// CHECK-SAME: dist.seed = #dist.seed<"[(4@(mb, dp), 2@tp), 33?]">
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data, tp=2:tensor">} {
  func.func @main(%a: tensor<8x33xi64> {dist.seed = #dist.seed<"[8@tp, 33]", priority = 0, origin = "sidecar">},
                  %b: tensor<8x33xf32> {dist.seed = #dist.seed<"[8?, 33@tp]", priority = -3, origin = "sidecar">},
                  %c: tensor<8x33xf32> {dist.seed = #dist.sharding<"[(4, 2@tp), 33]">}) -> tensor<8x33xf32> {
    return %c : tensor<8x33xf32>
  }
}

// -----

// States live across steps and step scalars have no dims: neither has a batch.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<8x6xf32> {dist.seed = #dist.seed<"[8@dp, 6?]">}
// CHECK-SAME: tensor<8x6xf32> {nn.initial = 0.000000e+00 : f64, nn.state = "m"}
// CHECK-SAME: tensor<f32> {nn.step_scalar = "lr"}
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=1:tensor">} {
  func.func @main(%x: tensor<8x6xf32>, %m: tensor<8x6xf32> {nn.state = "m", nn.initial = 0.0 : f64}, %lr: tensor<f32> {nn.step_scalar = "lr"}) -> tensor<8x6xf32> {
    return %x : tensor<8x6xf32>
  }
}

// -----

// A computed value's batch that the user cuts is cut in every micro-batch: by the major part of a merged dim as well. A dim that is no batch, and one
// that others may cut, stay as they are.
// CHECK-LABEL: func.func @main(
// CHECK: nn.relu {{.*}}dist.seed = #dist.seed<"[4@(mb, dp), 6?]", priority = 0, origin = "sidecar">
// CHECK: nn.reshape {{.*}}dist.seed = #dist.seed<"[24@(mb, tp)]", priority = 0, origin = "sidecar">
// CHECK: nn.transpose {{.*}}dist.seed = #dist.seed<"[6@tp, 4?]", priority = 0, origin = "sidecar">
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x6xf32> {nn.dims = ["batch", "width"]}) -> (tensor<24xf32>, tensor<6x4xf32>) {
    %a = nn.relu %x {dist.seed = #dist.seed<"[4@dp, 6?]", priority = 0, origin = "sidecar">} : tensor<4x6xf32> -> tensor<4x6xf32>
    %b = nn.reshape %a {dist.seed = #dist.seed<"[24@tp]", priority = 0, origin = "sidecar">} : tensor<4x6xf32> -> tensor<24xf32>
    %c = nn.transpose %a {permutation = array<i64: 1, 0>, dist.seed = #dist.seed<"[6@tp, 4?]", priority = 0, origin = "sidecar">} : tensor<4x6xf32> -> tensor<6x4xf32>
    return %b, %c : tensor<24xf32>, tensor<6x4xf32>
  }
}

// -----

// A dim called batch is the batch, and so is a multiple of it; what only begins so, or is computed from it, is not. "batch + 1" stands before the batch,
// and in an input that has no other.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<5x4xf32> {dist.seed = #dist.seed<"[5?, 4@dp]">
// CHECK-SAME: tensor<5x4xf32> {nn.dims = ["batch + 1", "4"]}
// CHECK-SAME: tensor<12x4xf32> {dist.seed = #dist.seed<"[12@dp, 4?]">
// CHECK-SAME: tensor<6x4xf32> {nn.dims = ["batch_of_keys", "4"]}
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=1:tensor">} {
  func.func @main(%a: tensor<5x4xf32> {nn.dims = ["batch + 1", "batch"]}, %b: tensor<5x4xf32> {nn.dims = ["batch + 1", "4"]},
                  %c: tensor<12x4xf32> {nn.dims = ["batch * 3", "4"]}, %d: tensor<6x4xf32> {nn.dims = ["batch_of_keys", "4"]}) -> tensor<5x4xf32> {
    return %a : tensor<5x4xf32>
  }
}

// -----

// Where none is called so, names that begin so count; an expression still does not, but a '-' between letters is no minus.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x3xf32> {dist.seed = #dist.seed<"[4@dp, 3?]">
// CHECK-SAME: tensor<3x4xf32> {nn.dims = ["batch_size - 1", "4"]}
// CHECK-SAME: tensor<4x3xf32> {dist.seed = #dist.seed<"[4@dp, 3?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=1:tensor">} {
  func.func @main(%a: tensor<4x3xf32> {nn.dims = ["batch_size", "3"]}, %b: tensor<3x4xf32> {nn.dims = ["batch_size - 1", "4"]},
                  %c: tensor<4x3xf32> {nn.dims = ["batch-size", "3"]}) -> tensor<4x3xf32> {
    return %a : tensor<4x3xf32>
  }
}

// -----

// A layout's own axis of data cuts the batch while every rank still gets a sequence. One that the batch is too small for cuts positions, which attention tells from
// other dims; a later one may fit again. dp is no layout's, and stays at the batch.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x6x2x8xf32> {dist.seed = #dist.seed<"[4@(dp, tp.z), 6@tp.x, 2?, 8?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp.x=3:data, tp.y=1:tensor, tp.z=2:data">} {
  func.func @main(%x: tensor<4x6x2x8xf32>) -> tensor<4x2x6x8xf32> {
    %q = nn.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x6x2x8xf32> -> tensor<4x2x6x8xf32>
    %o = nn.attention %q, %q, %q {scale = 0.5 : f64} : tensor<4x2x6x8xf32>, tensor<4x2x6x8xf32>, tensor<4x2x6x8xf32> -> tensor<4x2x6x8xf32>
    return %o : tensor<4x2x6x8xf32>
  }
}

// -----

// Without positions all stay at the batch.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<2x6xf32> {dist.seed = #dist.seed<"[2@tp.x, 6?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp.x=3:data, tp.y=1:tensor">} {
  func.func @main(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
    return %x : tensor<2x6xf32>
  }
}

// -----

// A state has the batch where its next value has it: the cache of a decoder.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x2x8xf32> {dist.seed = #dist.seed<"[4@dp, 2?, 8?]">
// CHECK-SAME: tensor<4x6x8xf32> {dist.seed = #dist.seed<"[4@dp, 6?, 8?]">, nn.state = "cache/0"}
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=1:tensor">} {
  func.func @main(%rows: tensor<4x2x8xf32>, %cache: tensor<4x6x8xf32> {nn.state = "cache/0"}, %position: tensor<i64> {nn.step_scalar = "position", nn.largest = 4 : i64})
      -> (tensor<4x6x8xf32> {nn.writes = "cache/0"}) {
    %next = nn.update_slice %cache, %rows, %position {dim = 1 : i64} : tensor<4x6x8xf32>, tensor<4x2x8xf32>, tensor<i64> -> tensor<4x6x8xf32>
    return %next : tensor<4x6x8xf32>
  }
}

// -----

// Each micro-batch has its own rows of a cache, as it has of an input.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x2x8xf32> {dist.seed = #dist.seed<"[4@(mb, dp), 2?, 8?]">
// CHECK-SAME: tensor<4x6x8xf32> {dist.seed = #dist.seed<"[4@(mb, dp), 6?, 8?]">, nn.state = "cache/0"}
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data, tp=1:tensor">} {
  func.func @main(%rows: tensor<4x2x8xf32>, %cache: tensor<4x6x8xf32> {nn.state = "cache/0"}, %position: tensor<i64> {nn.step_scalar = "position", nn.largest = 4 : i64})
      -> (tensor<4x6x8xf32> {nn.writes = "cache/0"}) {
    %next = nn.update_slice %cache, %rows, %position {dim = 1 : i64} : tensor<4x6x8xf32>, tensor<4x2x8xf32>, tensor<i64> -> tensor<4x6x8xf32>
    return %next : tensor<4x6x8xf32>
  }
}
