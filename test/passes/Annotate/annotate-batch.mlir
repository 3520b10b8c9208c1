// RUN: hpc-opt %s --hpc-annotate-batch --split-input-file | FileCheck %s

// The dim named batch... is cut, wherever it stands, micro-batches outside of dp; other inputs and dims of the same size stay whole.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x33xi64> {dist.seed = #dist.sharding<"[4@(mb, dp), 33]">
// CHECK-SAME: tensor<33x4xf32> {dist.seed = #dist.sharding<"[33, 4@(mb, dp)]">
// CHECK-SAME: tensor<4x4xf32> {nn.dims
module attributes {dist.mesh = #dist.mesh<"mb=2, dp=2, tp=1">} {
  func.func @main(%a: tensor<4x33xi64> {nn.dims = ["batch_size", "seq"]}, %b: tensor<33x4xf32> {nn.dims = ["seq", "batch_size"]},
                  %c: tensor<4x4xf32> {nn.dims = ["heads", "4"]}) -> tensor<4x4xf32> {
    return %c : tensor<4x4xf32>
  }
}

// -----

// No names: dim 0, of the inputs whose dim 0 has one size. An axis of size 1 is left out of the seed.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<4x3xf32> {dist.seed = #dist.sharding<"[4@dp, 3]">}
// CHECK-SAME: tensor<4xi64> {dist.seed = #dist.sharding<"[4@dp]">}
// CHECK-SAME: %{{[^:]*}}: tensor<3xf32>, %{{[^:]*}}: tensor<f32>)
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=2, tp=2">} {
  func.func @main(%a: tensor<4x3xf32>, %b: tensor<4xi64>, %c: tensor<3xf32>, %d: tensor<f32>) -> tensor<f32> {
    return %d : tensor<f32>
  }
}

// -----

// dp above the batch is legal (ranks with nothing), a batch of 1 has nothing to cut.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: tensor<3x2xf32> {dist.seed = #dist.sharding<"[3@dp, 2]">}
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=5, tp=1">} {
  func.func @main(%a: tensor<3x2xf32>) -> tensor<3x2xf32> {
    return %a : tensor<3x2xf32>
  }
}

// -----

// CHECK-LABEL: func.func @main(
// CHECK-NOT: dist.seed
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=2, tp=1">} {
  func.func @main(%a: tensor<1x48xi64> {nn.dims = ["batch_size", "seq"]}) -> tensor<1x48xi64> {
    return %a : tensor<1x48xi64>
  }
}
