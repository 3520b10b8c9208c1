// RUN: hpc-opt %s --hpc-split-stages="stages=2" --split-input-file | FileCheck %s

// A table that is smaller than what is looked up in it is held by both stages; the value it gives is not sent.
// CHECK-LABEL: func.func @small
// CHECK: pipe.stage 0 forward(%[[X:.*]], %[[I:.*]]) :
// CHECK: nn.embedding
// CHECK: pipe.transfer
// CHECK-NEXT: pipe.stage 1 forward(%[[I]], %{{.*}}) :
// CHECK: nn.embedding
module {
  func.func @small() { return }
  func.func @main(%x: tensor<2x8xf32>, %i: tensor<2xi64>) -> tensor<2x8xf32> {
    %table = nn.parameter "table" stored <file = "w", bytes = 64, hashes = [1]> : tensor<2x8xf32>
    %a = nn.parameter "a" stored <file = "w", bytes = 256, hashes = [1]> : tensor<8x8xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 256, hashes = [1]> : tensor<8x8xf32>
    %e = nn.embedding %table, %i {vocabulary = 2 : i64} : tensor<2x8xf32>, tensor<2xi64> -> tensor<2x8xf32>
    %0 = nn.matmul %x, %a : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %1 = nn.add %0, %e : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
    %2 = nn.matmul %1, %b : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %3 = nn.add %2, %e : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
    return %3 : tensor<2x8xf32>
  }
}

// -----

// A table larger than any other weight would cost each stage that holds it more than a layer: it stays in one, its value is sent.
// CHECK-LABEL: func.func @large
// CHECK: pipe.stage 0 forward
// CHECK: nn.embedding
// CHECK-COUNT-2: pipe.transfer
// CHECK: pipe.stage 1 forward
// CHECK-NOT: nn.embedding
module {
  func.func @large() { return }
  func.func @main(%x: tensor<2x8xf32>, %i: tensor<2xi64>) -> tensor<2x8xf32> {
    %table = nn.parameter "table" stored <file = "w", bytes = 32000, hashes = [1]> : tensor<1000x8xf32>
    %a = nn.parameter "a" stored <file = "w", bytes = 256, hashes = [1]> : tensor<8x8xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 256, hashes = [1]> : tensor<8x8xf32>
    %e = nn.embedding %table, %i {vocabulary = 1000 : i64} : tensor<1000x8xf32>, tensor<2xi64> -> tensor<2x8xf32>
    %0 = nn.matmul %x, %a : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %1 = nn.add %0, %e : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
    %2 = nn.matmul %1, %b : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %3 = nn.add %2, %e : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
    return %3 : tensor<2x8xf32>
  }
}

// -----

// The mean of a row that was looked up in a table of both stages is smaller than the table and still cheap: each stage computes it. Sent,
// it would take what is computed from it and the row along, which is as large as the row.
// CHECK-LABEL: func.func @mean
// CHECK: pipe.stage 0 forward
// CHECK: nn.embedding
// CHECK-COUNT-1: pipe.transfer
// CHECK-NOT: pipe.transfer
// CHECK: pipe.stage 1 forward
// CHECK: nn.embedding
// CHECK: nn.reduce sum
module {
  func.func @mean() { return }
  func.func @main(%x: tensor<16x8xf32>, %i: tensor<16xi64>) -> tensor<16x8xf32> {
    %table = nn.parameter "table" stored <file = "w", bytes = 320, hashes = [1]> : tensor<10x8xf32>
    %a = nn.parameter "a" stored <file = "w", bytes = 256, hashes = [1]> : tensor<8x8xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 256, hashes = [1]> : tensor<8x8xf32>
    %e = nn.embedding %table, %i {vocabulary = 10 : i64} : tensor<10x8xf32>, tensor<16xi64> -> tensor<16x8xf32>
    %sum = nn.reduce sum %e {axes = array<i64: 1>} : tensor<16x8xf32> -> tensor<16x1xf32>
    %d = nn.sub %e, %sum : tensor<16x8xf32>, tensor<16x1xf32> -> tensor<16x8xf32>
    %0 = nn.matmul %x, %a : tensor<16x8xf32>, tensor<8x8xf32> -> tensor<16x8xf32>
    %1 = nn.add %0, %e : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
    %2 = nn.matmul %1, %b : tensor<16x8xf32>, tensor<8x8xf32> -> tensor<16x8xf32>
    %3 = nn.add %2, %d : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
    return %3 : tensor<16x8xf32>
  }
}
