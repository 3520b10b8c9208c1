// RUN: hpc-opt %s --hpc-split-stages="stages=3" --split-input-file | FileCheck %s

// The next stage reads %0 in f32 and its copies in bf16, one of them turned: %0 is sent, and the stage makes the copies. Beside it they would be as many bytes again.
// The last stage reads a copy alone, which is sent from there: 2 bytes an element.
// CHECK-LABEL: func.func @beside
// CHECK: %[[F0:.*]] = pipe.stage 0 forward
// CHECK: nn.matmul
// CHECK-NEXT: pipe.yield %{{.*}} : tensor<8x8xf32>
// CHECK: %[[T:.*]] = pipe.transfer %[[F0]] {{.*}} : tensor<8x8xf32>
// CHECK-NEXT: %[[F1:.*]]:2 = pipe.stage 1 forward(%[[T]])
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<8x8xf32>):
// CHECK-DAG: %[[COPY:.*]] = nn.cast %[[X]] : tensor<8x8xf32> -> tensor<8x8xbf16>
// CHECK-DAG: nn.transpose %[[COPY]]
// CHECK-COUNT-2: pipe.transfer %[[F1]]#{{[01]}} {{.*}} : tensor<8x8xbf16>
// CHECK-NOT: pipe.transfer
// CHECK: pipe.stage 2 forward
module {
  func.func @beside() { return }
  func.func @main(%x: tensor<8x8xbf16>) -> tensor<8x8xf32> {
    %a = nn.parameter "a" stored <file = "w", bytes = 128, hashes = [1]> : tensor<8x8xbf16>
    %b = nn.parameter "b" stored <file = "w", bytes = 128, hashes = [1]> : tensor<8x8xbf16>
    %c = nn.parameter "c" stored <file = "w", bytes = 128, hashes = [1]> : tensor<8x8xbf16>
    %0 = nn.matmul %x, %a : tensor<8x8xbf16>, tensor<8x8xbf16> -> tensor<8x8xf32>
    %copy = nn.cast %0 : tensor<8x8xf32> -> tensor<8x8xbf16>
    %turned = nn.transpose %copy {permutation = array<i64: 1, 0>} : tensor<8x8xbf16> -> tensor<8x8xbf16>
    %1 = nn.matmul %turned, %b : tensor<8x8xbf16>, tensor<8x8xbf16> -> tensor<8x8xf32>
    %2 = nn.add %1, %0 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %3 = nn.cast %2 : tensor<8x8xf32> -> tensor<8x8xbf16>
    %4 = nn.matmul %3, %c : tensor<8x8xbf16>, tensor<8x8xbf16> -> tensor<8x8xf32>
    %5 = nn.matmul %copy, %c : tensor<8x8xbf16>, tensor<8x8xbf16> -> tensor<8x8xf32>
    %6 = nn.add %4, %5 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    return %6 : tensor<8x8xf32>
  }
}
