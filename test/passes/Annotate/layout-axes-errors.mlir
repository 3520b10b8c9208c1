// RUN: hpc-opt %s --hpc-annotate-tensor-parallel="layout=3d" -verify-diagnostics

// A mesh that was built for another layout lacks the axes of this one: seeds could not name them.
// expected-error @below {{[usage] the layout 3d arranges tp.z:tensor, and the mesh mb=1:time, dp=1:data, tp.x=2:data, tp.y=2:tensor has no such axis; give hpc-build-mesh the same layout}}
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp.x=2:data, tp.y=2:tensor">} {
  func.func @main(%a: tensor<4x33xf32>) -> tensor<4x33xf32> {
    return %a : tensor<4x33xf32>
  }
}
