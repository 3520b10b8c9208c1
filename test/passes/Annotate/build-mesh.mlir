// RUN: hpc-opt %s --hpc-build-mesh="tp=2 dp=3 micro-batches=4" | FileCheck %s
// RUN: hpc-opt %s --hpc-build-mesh | FileCheck %s --check-prefix=ONE

// Micro-batches are an axis, dp is minor to it, and every axis exists even at size 1: shardings may name it.
// CHECK: #dist.mesh<"mb=4, dp=3, tp=2">
// ONE: #dist.mesh<"mb=1, dp=1, tp=1">
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
