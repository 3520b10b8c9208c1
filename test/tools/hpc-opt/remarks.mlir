// What propagation weighed is not for everybody: at default verbosity only what a user can act on is printed.
// RUN: hpc-opt %s --tp=2 --compile-to=propagate 2>&1 >/dev/null | count 0
// RUN: hpc-opt %s --tp=2 --compile-to=propagate --remarks=user 2>&1 >/dev/null | count 0
// RUN: hpc-opt %s --tp=2 --compile-to=propagate --remarks=all 2>&1 >/dev/null | FileCheck %s
// CHECK: hpc-opt: remark: {{.*}}[hpc-propagate-shardings] operand 0 is [4, 6@tp], the op needs [4, 6]
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">, hpc.phase = "annotate"} {
  func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[4, 6@tp]">} : tensor<4x6xf32> -> tensor<4x6xf32>
    %y = nn.softmax %a : tensor<4x6xf32> -> tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}
