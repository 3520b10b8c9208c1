// RUN: split-file %s %t
// RUN: hpc-opt %t/data.mlir --hpc-annotate-batch | FileCheck %s
// RUN: not hpc-opt %t/time.mlir --hpc-annotate-batch 2>&1 | FileCheck %s --check-prefix=TIME

// A state of the batch's rows is cut as they are: each rank keeps those of its own.
// CHECK: %arg1: tensor<4x8x2xf32> {dist.seed = #dist.seed<"[4@dp, 8?, 2?]"
// Micro-batches would write the rows of one over those of another.
// TIME: state 'k' holds rows of the batch, of which each micro-batch would write its own; compile with --micro-batches=1

//--- data.mlir
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data">} {
  func.func @main(%x: tensor<4x1x2xf32> {nn.name = "x", nn.dims = ["batch", "1", "2"]}, %k: tensor<4x8x2xf32> {nn.state = "k", nn.initial = 0.0 : f64}, %at: tensor<i64> {nn.step_scalar = "position", nn.largest = 7 : i64})
      -> (tensor<4x8x2xf32> {nn.writes = "k"}) {
    %n = nn.update_slice %k, %x, %at {dim = 1 : i64} : tensor<4x8x2xf32>, tensor<4x1x2xf32>, tensor<i64> -> tensor<4x8x2xf32>
    return %n : tensor<4x8x2xf32>
  }
}
//--- time.mlir
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data">} {
  func.func @main(%x: tensor<4x1x2xf32> {nn.name = "x", nn.dims = ["batch", "1", "2"]}, %k: tensor<4x8x2xf32> {nn.state = "k", nn.initial = 0.0 : f64}, %at: tensor<i64> {nn.step_scalar = "position", nn.largest = 7 : i64})
      -> (tensor<4x8x2xf32> {nn.writes = "k"}) {
    %n = nn.update_slice %k, %x, %at {dim = 1 : i64} : tensor<4x8x2xf32>, tensor<4x1x2xf32>, tensor<i64> -> tensor<4x8x2xf32>
    return %n : tensor<4x8x2xf32>
  }
}
