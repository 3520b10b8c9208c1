// RUN: hpc-opt %s --hpc-split-stages="stages=2 chunks=2" | FileCheck %s
// RUN: not hpc-opt %s --hpc-split-stages="stages=2 chunks=3" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not hpc-opt %s --hpc-split-stages="stages=5 chunks=2" 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: not hpc-opt %s --hpc-split-stages="stages=0" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not hpc-opt %s --hpc-split-stages="stages=2 split=1,5" 2>&1 | FileCheck %s --check-prefix=LIST

// Two parts a stage: part 2 is chunk 1 of stage 0, so the last stage sends back to the first. With another order the bubble would not shrink.
// CHECK: pipe.stage 0 forward
// CHECK: pipe.transfer {{.*}}from = 0 : i64, to = 1 : i64
// CHECK: pipe.stage 1 forward
// CHECK: pipe.transfer {{.*}}from = 1 : i64, to = 0 : i64
// CHECK: pipe.stage 0 chunk 1 forward
// CHECK: pipe.transfer {{.*}}from = 0 : i64, to = 1 : i64
// CHECK: pipe.stage 1 chunk 1 forward

// Refusals name what would do.
// MANY: [usage] pp=2 with 3 chunks a stage needs 6 places to cut, the graph has 4; use --pp-chunks=1 to 2
// STAGES: [usage] pp=5 with 2 chunks a stage needs 10 places to cut, the graph has 4; use --pp=1 to 4 with --pp-chunks=1
// NONE: [usage] --pp=0 and --pp-chunks=1 must both be at least 1
// LIST: [usage] --pp-split=1,5 is not uniform, balanced, or a list of block counts from 1 to 4 such as 1,2,1
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %a = nn.parameter "a" stored <file = "w", bytes = 64, hashes = [1]> : tensor<4x4xf32>
  %b = nn.parameter "b" stored <file = "w", bytes = 64, hashes = [1]> : tensor<4x4xf32>
  %c = nn.parameter "c" stored <file = "w", bytes = 64, hashes = [1]> : tensor<4x4xf32>
  %d = nn.parameter "d" stored <file = "w", bytes = 64, hashes = [1]> : tensor<4x4xf32>
  %p = nn.matmul %x, %a : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %q = nn.matmul %p, %b : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %r = nn.matmul %q, %c : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %s = nn.matmul %r, %d : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  return %s : tensor<2x4xf32>
}
