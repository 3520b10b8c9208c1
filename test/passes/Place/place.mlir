// RUN: hpc-opt %s -o %t.plan && hpc-plan %t.plan | FileCheck %s
// RUN: not hpc-opt %s --memory=100 -o %t.small.plan 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not test -e %t.small.plan

// a lives until b is computed, b until c is: c takes a's place, and the arena is two buffers wide. If it grows, live ranges are lost; if it shrinks, live
// buffers overlap.
// CHECK: stages total weights states step slots temporaries
// CHECK-NEXT: 0 128 0 0 0 0 128 0
// SMALL: error[capacity]: a rank of stage 0 needs 128 bytes (weights 0, states 0, accumulators 0, activations of micro-batches in flight 0, buffers 128), --memory allows 100; its largest buffers are
module attributes {dist.mesh = #dist.mesh<"tp=1:tensor">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<4x4xf32> {nn.name = "x"}) -> (tensor<4x4xf32> {nn.name = "y"}) {
    %a = nn.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %b = nn.matmul %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %c = nn.matmul %b, %b : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %c : tensor<4x4xf32>
  }
}
