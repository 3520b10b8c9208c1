// RUN: hpc-opt %s --split-input-file --hpc-build-mesh="degrees=dp=2,cp=3,tp=2" --hpc-annotate-batch --hpc-annotate-tensor-parallel --hpc-annotate-sequence="balance=plain" | FileCheck %s --check-prefixes=CHECK,GATHER
// RUN: hpc-opt %s --split-input-file --hpc-build-mesh="degrees=dp=2,cp=3,tp=2" --hpc-annotate-batch --hpc-annotate-tensor-parallel --hpc-annotate-sequence="mode=ulysses balance=plain" | FileCheck %s --check-prefixes=CHECK,ULYSSES
// RUN: hpc-opt %s --split-input-file --hpc-build-mesh="degrees=dp=2,tp=2" --hpc-annotate-batch --hpc-annotate-sequence | FileCheck %s --check-prefix=ONE

// Positions are cut beside batch and columns, of inputs and of activations; parameters are whole over cp. A mask of padding has keys alone, and reaches attention through one of scores, which
// has queries, too: only these are cut, or both would want cp. With ulysses attention has heads over cp, inside of tp's, and all positions; scores stay whole for it.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<4x8xi64> {dist.seed = #dist.seed<"[4@dp, 8@cp]">}
// CHECK-SAME: %arg1: tensor<4x8xi1> {dist.seed = #dist.seed<"[4@dp, 8@cp]">}
// CHECK: nn.parameter "table"
// CHECK-NOT: @cp
// CHECK: nn.embedding {{.*}}dist.seed = #dist.seed<"[4?, 8@cp, 24?]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 8@cp, 24?]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 8@cp, 8?]">
// CHECK: nn.reshape {{.*}}dist.seed = #dist.seed<"[4?, 8@cp, 6?, 4?]">
// CHECK: nn.transpose {{.*}}dist.seed = #dist.seed<"[4?, 6?, 8@cp, 4?]">
// CHECK: nn.transpose {{.*}}dist.seed = #dist.seed<"[4?, 2?, 8@cp, 4?]">
// CHECK: nn.reshape {{.*}}dist.seed = #dist.seed<"[4?, 1?, 1?, 8@cp]">
// GATHER: nn.and {{.*}}dist.seed = #dist.seed<"[4?, 1?, 8@cp, 8?]">
// ULYSSES: nn.and {{.*}}dist.seed = #dist.seed<"[4?, 1?, 8, 8]">
// GATHER: nn.attention {{.*}}dist.seed = #dist.seed<"[4?, 6?, 8@cp, 4?]">
// ULYSSES: nn.attention {{.*}}dist.seed = #dist.seed<"[4?, (2@tp, 3@cp), 8, 4?]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 8@cp, 24?]">
// The gradient of a table of positions is whole before an update reads it.
// CHECK: nn.reshape {{.*}}dist.seed = #dist.seed<"[8, 24?]">
// CHECK: nn.sub
// CHECK-NOT: dist.seed

// Without the axis, nothing.
// ONE-LABEL: func.func @main
// ONE-NOT: @cp
module {
  func.func @main(%ids: tensor<4x8xi64>, %shown: tensor<4x8xi1>) -> (tensor<4x8x24xf32>, tensor<8x24xf32> {nn.writes = "positions"}) {
    %table = nn.parameter "table" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<20x24xf32>
    %positions = nn.parameter "positions" stored <file = "w", bytes = 768, hashes = [1]> : tensor<8x24xf32>
    %wq = nn.parameter "q" stored <file = "w", bytes = 2304, hashes = [1]> : tensor<24x24xf32>
    %wk = nn.parameter "k" stored <file = "w", bytes = 768, hashes = [1]> : tensor<24x8xf32>
    %wo = nn.parameter "o" stored <file = "w", bytes = 2304, hashes = [1]> : tensor<24x24xf32>
    %row = nn.iota {dim = 2 : i64} : tensor<1x1x8x1xi64>
    %column = nn.iota {dim = 3 : i64} : tensor<1x1x1x8xi64>
    %causal = nn.compare ge %row, %column : tensor<1x1x8x1xi64>, tensor<1x1x1x8xi64> -> tensor<1x1x8x8xi1>
    %e = nn.embedding %table, %ids {vocabulary = 20 : i64} : tensor<20x24xf32>, tensor<4x8xi64> -> tensor<4x8x24xf32>
    %x = nn.add %e, %positions : tensor<4x8x24xf32>, tensor<8x24xf32> -> tensor<4x8x24xf32>
    %q0 = nn.matmul %x, %wq : tensor<4x8x24xf32>, tensor<24x24xf32> -> tensor<4x8x24xf32>
    %k0 = nn.matmul %x, %wk : tensor<4x8x24xf32>, tensor<24x8xf32> -> tensor<4x8x8xf32>
    %q1 = nn.reshape %q0 : tensor<4x8x24xf32> -> tensor<4x8x6x4xf32>
    %k1 = nn.reshape %k0 : tensor<4x8x8xf32> -> tensor<4x8x2x4xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x8x6x4xf32> -> tensor<4x6x8x4xf32>
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x8x2x4xf32> -> tensor<4x2x8x4xf32>
    %padding = nn.reshape %shown : tensor<4x8xi1> -> tensor<4x1x1x8xi1>
    %seen = nn.and %padding, %causal : tensor<4x1x1x8xi1>, tensor<1x1x8x8xi1> -> tensor<4x1x8x8xi1>
    %a = nn.attention %q, %k, %k visible %seen : tensor<4x1x8x8xi1> {scale = 0.5 : f64, hidden = -10000.0 : f64} : tensor<4x6x8x4xf32>, tensor<4x2x8x4xf32>, tensor<4x2x8x4xf32> -> tensor<4x6x8x4xf32>
    %a1 = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x6x8x4xf32> -> tensor<4x8x6x4xf32>
    %a2 = nn.reshape %a1 : tensor<4x8x6x4xf32> -> tensor<4x8x24xf32>
    %y = nn.matmul %a2, %wo : tensor<4x8x24xf32>, tensor<24x24xf32> -> tensor<4x8x24xf32>
    %g = nn.reduce sum %x {axes = array<i64: 0>} : tensor<4x8x24xf32> -> tensor<1x8x24xf32>
    %d = nn.reshape %g : tensor<1x8x24xf32> -> tensor<8x24xf32>
    %next = nn.sub %positions, %d : tensor<8x24xf32>, tensor<8x24xf32> -> tensor<8x24xf32> loc(fused<"update">["positions"])
    return %y, %next : tensor<4x8x24xf32>, tensor<8x24xf32>
  }
}

// -----

// Attention that is written out (capped scores have no op) is known by its softmax. Queries and keys come from the same rows, and the residual stream meets keys first: scores are cut over
// queries all the same, and with ulysses all products around them over heads.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<4x8x12xf32> {dist.seed = #dist.seed<"[4@dp, 8@cp, 12?]">}
// GATHER: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 3?, 8@cp, 8?]">{{.*}}transpose_rhs
// ULYSSES: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 3@(tp, cp), 8, 8]">{{.*}}transpose_rhs
// GATHER: nn.tanh {{.*}}dist.seed = #dist.seed<"[4?, 3?, 8@cp, 8?]">
// ULYSSES: nn.tanh {{.*}}dist.seed = #dist.seed<"[4?, 3?, 8, 8]">
// GATHER: nn.softmax {{.*}}dist.seed = #dist.seed<"[4?, 3?, 8@cp, 8?]">
// ULYSSES: nn.softmax {{.*}}dist.seed = #dist.seed<"[4?, 3?, 8, 8]">
// GATHER: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 3?, 8@cp, 4?]">
// ULYSSES: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 3@(tp, cp), 8, 4?]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 8@cp, 12?]">
// ONE-LABEL: func.func @main
// ONE-NOT: @cp
module {
  func.func @main(%x: tensor<4x8x12xf32>) -> tensor<4x8x12xf32> {
    %wk = nn.parameter "k" stored <file = "w", bytes = 576, hashes = [1]> : tensor<12x12xf32>
    %wq = nn.parameter "q" stored <file = "w", bytes = 576, hashes = [1]> : tensor<12x12xf32>
    %wo = nn.parameter "o" stored <file = "w", bytes = 576, hashes = [1]> : tensor<12x12xf32>
    %k0 = nn.matmul %x, %wk : tensor<4x8x12xf32>, tensor<12x12xf32> -> tensor<4x8x12xf32>
    %k1 = nn.reshape %k0 : tensor<4x8x12xf32> -> tensor<4x8x3x4xf32>
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x8x3x4xf32> -> tensor<4x3x8x4xf32>
    %q0 = nn.matmul %x, %wq : tensor<4x8x12xf32>, tensor<12x12xf32> -> tensor<4x8x12xf32>
    %q1 = nn.reshape %q0 : tensor<4x8x12xf32> -> tensor<4x8x3x4xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x8x3x4xf32> -> tensor<4x3x8x4xf32>
    %scores = nn.matmul %q, %k {transpose_rhs} : tensor<4x3x8x4xf32>, tensor<4x3x8x4xf32> -> tensor<4x3x8x8xf32>
    %capped = nn.tanh %scores : tensor<4x3x8x8xf32> -> tensor<4x3x8x8xf32>
    %p = nn.softmax %capped : tensor<4x3x8x8xf32> -> tensor<4x3x8x8xf32>
    %a = nn.matmul %p, %k : tensor<4x3x8x8xf32>, tensor<4x3x8x4xf32> -> tensor<4x3x8x4xf32>
    %a1 = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x3x8x4xf32> -> tensor<4x8x3x4xf32>
    %a2 = nn.reshape %a1 : tensor<4x8x3x4xf32> -> tensor<4x8x12xf32>
    %y = nn.matmul %a2, %wo : tensor<4x8x12xf32>, tensor<12x12xf32> -> tensor<4x8x12xf32>
    return %y : tensor<4x8x12xf32>
  }
}
