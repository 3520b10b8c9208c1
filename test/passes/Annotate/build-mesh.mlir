// RUN: hpc-opt %s --hpc-build-mesh=degrees=tp=2,dp=3,mb=4 | FileCheck %s
// RUN: hpc-opt %s --hpc-build-mesh | FileCheck %s --check-prefix=ONE

// Micro-batches are an axis, dp is minor to it, and every axis exists even at size 1: shardings may name it.
// CHECK: #dist.mesh<"mb=4:time, dp=3:data, cp=1:sequence, tp=2:tensor">
// ONE: #dist.mesh<"mb=1:time, dp=1:data, cp=1:sequence, tp=1:tensor">
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
