// RUN: hpc-opt %s --hpc-split-stages="stages=2 split=uniform" --hpc-make-schedule --hpc-verify-staged --split-input-file | FileCheck %s
// RUN: hpc-opt %s --hpc-split-stages="stages=2 split=1,2" --split-input-file | FileCheck %s --check-prefix=LIST
// RUN: hpc-opt %s --hpc-split-stages="stages=1" --split-input-file | FileCheck %s --check-prefix=ONE

// Three equal layers over two stages: what comes before the first belongs to it, what follows the last to the last; one activation crosses.
// The tied table is in both. A stage that read anything else of the other would need a second transfer.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[IDS:[^:]*]]: tensor<2xi64>
// CHECK-NEXT: %[[S0:.*]] = pipe.stage 0 forward(%[[IDS]]) : (tensor<2xi64>) -> tensor<2x4xf32>
// CHECK: nn.parameter "wte"
// CHECK: nn.embedding
// CHECK-COUNT-2: nn.gelu
// CHECK-NOT: nn.gelu
// CHECK: pipe.yield
// CHECK: %[[T:.*]] = pipe.transfer %[[S0]] {{.*}}from = 0 : i64, to = 1 : i64}
// CHECK-NEXT: %[[S1:.*]] = pipe.stage 1 forward(%[[T]]) : (tensor<2x4xf32>) -> tensor<2x7xf32>
// CHECK: nn.parameter "wte"
// CHECK-NOT: nn.embedding
// CHECK: nn.gelu
// CHECK-NOT: nn.gelu
// CHECK: nn.rms_norm
// CHECK: nn.matmul {{.*}} {transpose_rhs}
// CHECK: pipe.yield
// CHECK: return %[[S1]]

// The user's list counts blocks.
// LIST-LABEL: func.func @main
// LIST: pipe.stage 0
// LIST-COUNT-1: nn.gelu
// LIST-NOT: nn.gelu
// LIST: pipe.stage 1
// LIST-COUNT-2: nn.gelu

// One stage has all and needs no transfer.
// ONE-LABEL: func.func @main
// ONE: pipe.stage 0
// ONE-NOT: pipe.stage
// ONE-NOT: pipe.transfer
// ONE: return
func.func @main(%ids: tensor<2xi64>) -> tensor<2x7xf32> {
  %wte = nn.parameter "wte" stored <file = "w", bytes = 112, hashes = [1]> : tensor<7x4xf32>
  %up0 = nn.parameter "up0" stored <file = "w", bytes = 128, hashes = [1]> : tensor<4x8xf32>
  %down0 = nn.parameter "down0" stored <file = "w", bytes = 128, hashes = [1]> : tensor<8x4xf32>
  %up1 = nn.parameter "up1" stored <file = "w", bytes = 128, hashes = [1]> : tensor<4x8xf32>
  %down1 = nn.parameter "down1" stored <file = "w", bytes = 128, hashes = [1]> : tensor<8x4xf32>
  %up2 = nn.parameter "up2" stored <file = "w", bytes = 128, hashes = [1]> : tensor<4x8xf32>
  %down2 = nn.parameter "down2" stored <file = "w", bytes = 128, hashes = [1]> : tensor<8x4xf32>
  %w = nn.parameter "w" stored <file = "w", bytes = 16, hashes = [1]> : tensor<4xf32>
  %e = nn.embedding %wte, %ids {vocabulary = 7 : i64} : tensor<7x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
  %m0 = nn.matmul %e, %up0 : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  %g0 = nn.gelu %m0 : tensor<2x8xf32> -> tensor<2x8xf32>
  %d0 = nn.matmul %g0, %down0 : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  %x0 = nn.add %d0, %e : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %m1 = nn.matmul %x0, %up1 : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  %g1 = nn.gelu %m1 : tensor<2x8xf32> -> tensor<2x8xf32>
  %d1 = nn.matmul %g1, %down1 : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  %x1 = nn.add %d1, %x0 : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %m2 = nn.matmul %x1, %up2 : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  %g2 = nn.gelu %m2 : tensor<2x8xf32> -> tensor<2x8xf32>
  %d2 = nn.matmul %g2, %down2 : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  %x2 = nn.add %d2, %x1 : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %n = nn.rms_norm %x2 weight %w : tensor<4xf32> {epsilon = 1.0e-5 : f64} : tensor<2x4xf32> -> tensor<2x4xf32>
  %y = nn.matmul %n, %wte {transpose_rhs} : tensor<2x4xf32>, tensor<7x4xf32> -> tensor<2x7xf32>
  return %y : tensor<2x7xf32>
}

// -----

// What depends on inputs alone (a mask) or on weights alone is computed where it is used, never sent: the graph input reaches both stages.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x4xf32>, %[[M:[^:]*]]: tensor<2x1xi64>
// CHECK: pipe.stage 0 forward(%[[X]], %[[M]])
// CHECK: nn.cast
// CHECK: %[[T:.*]] = pipe.transfer
// CHECK-NOT: pipe.transfer
// CHECK: pipe.stage 1 forward(%[[M]], %[[T]])
// CHECK: nn.cast
// LIST-LABEL: func.func @main
// ONE-LABEL: func.func @main
func.func @main(%x: tensor<2x4xf32>, %mask: tensor<2x1xi64>) -> tensor<2x4xf32> {
  %w0 = nn.parameter "w0" stored <file = "w", bytes = 64, hashes = [1]> : tensor<4x4xf32>
  %w1 = nn.parameter "w1" stored <file = "w", bytes = 64, hashes = [1]> : tensor<4x4xf32>
  %w2 = nn.parameter "w2" stored <file = "w", bytes = 64, hashes = [1]> : tensor<4x4xf32>
  %c = nn.cast %mask : tensor<2x1xi64> -> tensor<2x1xf32>
  %a0 = nn.matmul %x, %w0 : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %b0 = nn.mul %a0, %c : tensor<2x4xf32>, tensor<2x1xf32> -> tensor<2x4xf32>
  %a1 = nn.matmul %b0, %w1 : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %b1 = nn.mul %a1, %c : tensor<2x4xf32>, tensor<2x1xf32> -> tensor<2x4xf32>
  %a2 = nn.matmul %b1, %w2 : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %b2 = nn.mul %a2, %c : tensor<2x4xf32>, tensor<2x1xf32> -> tensor<2x4xf32>
  return %b2 : tensor<2x4xf32>
}
