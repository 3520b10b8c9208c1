// RUN: hpc-opt %s --hpc-keep-logits=length=8 --hpc-annotate-steps="length=8 rows=4" --hpc-propagate-shardings --hpc-insert-reshards --hpc-localize --hpc-hold-keys --hpc-verify-generated | FileCheck %s --check-prefix=ROWS
// RUN: hpc-opt %s --hpc-keep-logits=length=8 --hpc-annotate-steps="length=8 rows=1" --hpc-propagate-shardings --hpc-insert-reshards --hpc-localize --hpc-hold-keys --hpc-verify-generated | FileCheck %s --check-prefix=ONE

// RUN: hpc-opt %s --hpc-keep-logits=length=8 --hpc-annotate-steps="length=8 rows=8" --hpc-propagate-shardings --hpc-insert-reshards --hpc-localize --hpc-hold-keys --hpc-verify-generated | FileCheck %s --check-prefix=ALL

// A step of 4 of 8 positions: rows of the table and of the numbers from `position` on, keys in a state, and behind them the one row that has logits. The size that the model states is that of a step.
// ROWS-NOT: dist.
// ROWS: func.func @main(%arg0: tensor<2x4xi64> {nn.dims = ["batch", "4"], nn.name = "ids"}, %arg1: tensor<i64> {nn.largest = 4 : i64, nn.step_scalar = "position"}, %arg2: tensor<i64> {nn.largest = 3 : i64, nn.step_scalar = "row"},
// ROWS-SAME: %arg3: tensor<2x2x8x4xf32> {nn.initial = 0.000000e+00 : f64, nn.state = "cache/0"}, %arg4: tensor<2x2x8x4xf32> {{.*}}nn.state = "cache/1"}
// ROWS-SAME: -> (tensor<2x1x20xf32> {nn.name = "logits"}, tensor<2x2x8x4xf32> {nn.writes = "cache/0"}, tensor<2x2x8x4xf32> {nn.writes = "cache/1"})
// ROWS: nn.iota offset %arg1 : tensor<i64> {dim = 1 : i64} : tensor<1x4x1xf32>
// ROWS: %[[AT:.*]] = nn.iota offset %arg1 : tensor<i64> {dim = 0 : i64} : tensor<4xi64>
// ROWS: nn.gather %{{.*}}, %[[AT]] {axis = 1 : i64} : tensor<2x8x24xf32>, tensor<4xi64> -> tensor<2x4x24xf32>
// ROWS: %[[ROW:.*]] = nn.iota offset %arg2 : tensor<i64> {dim = 0 : i64} : tensor<1xi64>
// ROWS: nn.gather %{{.*}}, %[[ROW]] {axis = 1 : i64} : tensor<2x4x24xf32>, tensor<1xi64> -> tensor<2x1x24xf32>
// ROWS-DAG: %[[KEYS:.*]] = nn.update_slice %arg3, %{{.*}}, %arg1 {dim = 2 : i64} : tensor<2x2x8x4xf32>, tensor<2x2x4x4xf32>, tensor<i64>
// ROWS-DAG: %[[VALUES:.*]] = nn.update_slice %arg4, %{{.*}}, %arg1 {dim = 2 : i64}
// ROWS-DAG: %[[PLACE:.*]] = nn.add %arg1, %arg2 : tensor<i64>
// ROWS: nn.attention %{{.*}}, %[[KEYS]], %[[VALUES]] query_start %[[PLACE]] : tensor<i64>
// ROWS-SAME: tensor<2x6x1x4xf32>, tensor<2x2x8x4xf32>
// ROWS: return %{{.*}}, %[[KEYS]], %[[VALUES]]

// Of one position there is no row to choose.
// ONE: func.func @main(%arg0: tensor<2x1xi64> {{.*}}, %arg1: tensor<i64> {nn.largest = 7 : i64, nn.step_scalar = "position"}, %arg2: tensor<2x2x8x4xf32>
// ONE: nn.attention {{.*}} query_start %arg1 : tensor<i64>

// A step of all positions gathers no keys, and writes them for those that follow.
// ALL: func.func @main(%arg0: tensor<2x8xi64> {{.*}}, %arg1: tensor<i64> {nn.largest = 0 : i64, nn.step_scalar = "position"}, %arg2: tensor<i64> {nn.largest = 7 : i64, nn.step_scalar = "row"}, %arg3: tensor<2x2x8x4xf32>
// ALL-DAG: %[[KEYS:.*]] = nn.update_slice %arg3, %{{.*}}, %arg1 {dim = 2 : i64} : tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>
// ALL-DAG: %[[VALUES:.*]] = nn.update_slice %arg4
// ALL-DAG: %[[PLACE:.*]] = nn.add %arg1, %arg2 : tensor<i64>
// ALL: nn.attention %{{.*}}, %[[KEYS]], %[[VALUES]] query_start %[[PLACE]] : tensor<i64>
// ALL: return %{{.*}}, %[[KEYS]], %[[VALUES]]
module {
  func.func @main(%ids: tensor<2x8xi64> {nn.name = "ids", nn.dims = ["batch", "8"]}, %past: tensor<2x2x0x4xf32> {nn.name = "past"})
      -> (tensor<2x8x20xf32> {nn.name = "logits"}, tensor<2x2x8x4xf32> {nn.name = "present"}) {
    %table = nn.parameter "table" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<20x24xf32>
    %positions = nn.parameter "positions" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %wq = nn.parameter "q" stored <file = "w", bytes = 2304, hashes = [1]> : tensor<24x24xf32>
    %wk = nn.parameter "k" stored <file = "w", bytes = 768, hashes = [1]> : tensor<24x8xf32>
    %wo = nn.parameter "o" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %n = nn.iota {dim = 1 : i64} : tensor<1x8x1xf32>
    %e = nn.embedding %table, %ids {vocabulary = 20 : i64} : tensor<20x24xf32>, tensor<2x8xi64> -> tensor<2x8x24xf32>
    %f = nn.add %e, %n : tensor<2x8x24xf32>, tensor<1x8x1xf32> -> tensor<2x8x24xf32>
    %p = nn.slice %positions {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<16x24xf32> -> tensor<8x24xf32>
    %x = nn.add %f, %p : tensor<2x8x24xf32>, tensor<8x24xf32> -> tensor<2x8x24xf32>
    %q0 = nn.matmul %x, %wq : tensor<2x8x24xf32>, tensor<24x24xf32> -> tensor<2x8x24xf32>
    %k0 = nn.matmul %x, %wk : tensor<2x8x24xf32>, tensor<24x8xf32> -> tensor<2x8x8xf32>
    %q1 = nn.reshape %q0 : tensor<2x8x24xf32> -> tensor<2x8x6x4xf32>
    %k1 = nn.reshape %k0 : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x8x6x4xf32> -> tensor<2x6x8x4xf32>
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x8x2x4xf32> -> tensor<2x2x8x4xf32>
    %v = nn.tanh %k : tensor<2x2x8x4xf32> -> tensor<2x2x8x4xf32>
    %a = nn.attention %q, %k, %v {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<2x6x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32> -> tensor<2x6x8x4xf32>
    %a1 = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x8x4xf32> -> tensor<2x8x6x4xf32>
    %a2 = nn.reshape %a1 : tensor<2x8x6x4xf32> -> tensor<2x8x24xf32>
    %y = nn.matmul %a2, %wo : tensor<2x8x24xf32>, tensor<24x20xf32> -> tensor<2x8x20xf32>
    %present = nn.concat %past, %k {axis = 2 : i64} : tensor<2x2x0x4xf32>, tensor<2x2x8x4xf32> -> tensor<2x2x8x4xf32>
    return %y, %present : tensor<2x8x20xf32>, tensor<2x2x8x4xf32>
  }
}
