// RUN: not hpc-opt %s -o %t.plan 2>&1 | FileCheck %s
// RUN: not test -e %t.plan

// The host's library multiplies f32; a program in f64 must be refused, not computed in another type.
// CHECK: error[unsupported]: nn.matmul of ONNX node 'wide': matrix products are f32 here; got f64
module attributes {dist.mesh = #dist.mesh<"tp=1:tensor">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x3xf64> {nn.name = "x"}) -> (tensor<2x2xf64> {nn.name = "y"}) {
    %0 = nn.matmul %x, %x {transpose_rhs} : tensor<2x3xf64>, tensor<2x3xf64> -> tensor<2x2xf64> loc("wide")
    return %0 : tensor<2x2xf64>
  }
}
