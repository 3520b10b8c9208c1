// RUN: hpc-opt %s --hpc-annotate-batch="batch-dim=seq" | FileCheck %s

// The user's name wins over the one that starts with batch.
// CHECK: tensor<4x33xi64> {dist.seed = #dist.seed<"[4?, 33@dp]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=1:tensor">} {
  func.func @main(%a: tensor<4x33xi64> {nn.dims = ["batch_size", "seq"]}) -> tensor<4x33xi64> {
    return %a : tensor<4x33xi64>
  }
}
