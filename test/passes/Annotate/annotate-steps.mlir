// RUN: hpc-opt %s --hpc-annotate-steps="length=8 rows=4" | FileCheck %s --check-prefixes=CHECK,ROWS
// RUN: hpc-opt %s --hpc-annotate-steps="length=8 rows=1" | FileCheck %s --check-prefixes=CHECK,ONE

// Positions are cut over the steps; queries, and all that follows, over the rows of one, too: no key comes from there. With one row there is nothing more to cut.
// ROWS: #dist.mesh<"cp=2:sequence, row=4:sequence">
// ONE: #dist.mesh<"cp=8:sequence, row=1:sequence">
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<2x8xi64> {dist.seed = #dist.seed<"[2?, 8@cp]">
// CHECK: nn.parameter "positions"
// CHECK-NOT: @cp
// CHECK: nn.embedding {{.*}}dist.seed = #dist.seed<"[2?, 8@cp, 24?]">
// ROWS: nn.matmul {{.*}}dist.seed = #dist.seed<"[2?, 8@(cp, row), 24?]">
// ONE: nn.matmul {{.*}}dist.seed = #dist.seed<"[2?, 8@cp, 24?]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[2?, 8@cp, 8?]">
// ROWS: nn.attention {{.*}}dist.seed = #dist.seed<"[2?, 6?, 8@(cp, row), 4?]">
// ONE: nn.attention {{.*}}dist.seed = #dist.seed<"[2?, 6?, 8@cp, 4?]">
// ROWS: nn.matmul {{.*}}dist.seed = #dist.seed<"[2?, 8@(cp, row), 20?]">
// ONE: nn.matmul {{.*}}dist.seed = #dist.seed<"[2?, 8@cp, 20?]">
module {
  func.func @main(%ids: tensor<2x8xi64> {nn.name = "ids"}) -> (tensor<2x8x20xf32> {nn.name = "logits"}) {
    %table = nn.parameter "table" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<20x24xf32>
    %positions = nn.parameter "positions" stored <file = "w", bytes = 768, hashes = [1]> : tensor<8x24xf32>
    %wq = nn.parameter "q" stored <file = "w", bytes = 2304, hashes = [1]> : tensor<24x24xf32>
    %wk = nn.parameter "k" stored <file = "w", bytes = 768, hashes = [1]> : tensor<24x8xf32>
    %wo = nn.parameter "o" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %e = nn.embedding %table, %ids {vocabulary = 20 : i64} : tensor<20x24xf32>, tensor<2x8xi64> -> tensor<2x8x24xf32>
    %x = nn.add %e, %positions : tensor<2x8x24xf32>, tensor<8x24xf32> -> tensor<2x8x24xf32>
    %q0 = nn.matmul %x, %wq : tensor<2x8x24xf32>, tensor<24x24xf32> -> tensor<2x8x24xf32>
    %k0 = nn.matmul %x, %wk : tensor<2x8x24xf32>, tensor<24x8xf32> -> tensor<2x8x8xf32>
    %q1 = nn.reshape %q0 : tensor<2x8x24xf32> -> tensor<2x8x6x4xf32>
    %k1 = nn.reshape %k0 : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x8x6x4xf32> -> tensor<2x6x8x4xf32>
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x8x2x4xf32> -> tensor<2x2x8x4xf32>
    %a = nn.attention %q, %k, %k {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<2x6x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32> -> tensor<2x6x8x4xf32>
    %a1 = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x8x4xf32> -> tensor<2x8x6x4xf32>
    %a2 = nn.reshape %a1 : tensor<2x8x6x4xf32> -> tensor<2x8x24xf32>
    %y = nn.matmul %a2, %wo : tensor<2x8x24xf32>, tensor<24x20xf32> -> tensor<2x8x20xf32>
    return %y : tensor<2x8x20xf32>
  }
}
