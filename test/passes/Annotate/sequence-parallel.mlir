// RUN: hpc-opt %s -split-input-file --hpc-build-mesh="degrees=tp=2" --hpc-annotate-batch --hpc-annotate-tensor-parallel="layout=1d+sp" | FileCheck %s

// Weights have 1d's cuts. What follows from a sum over tp is cut along the sequence up to the next product by columns: the norm after the lookup, the residual, the last
// norm; neither the query and what attention makes of it, nor what only positions give (a table of angles). The input stays whole. Products by columns keep these cut,
// though their operands are cut along the sequence.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<4x5xi64> {dist.seed = #dist.seed<"[4?, 5]">}
// CHECK-DAG: nn.parameter "table" {{.*}}dist.seed = #dist.seed<"[53@tp, 12?]">
// CHECK-DAG: nn.parameter "query" {{.*}}dist.seed = #dist.seed<"[12?, (2@tp, 6)]">
// CHECK-DAG: nn.parameter "out" {{.*}}dist.seed = #dist.seed<"[(2@tp, 6), 12?]">
// CHECK: nn.embedding
// CHECK-NOT: dist.seed
// CHECK: nn.layer_norm {{.*}}dist.seed = #dist.seed<"[4?, 5@tp, 12?]">
// CHECK-COUNT-3: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 5?, 12@tp]">
// CHECK-NOT: dist.seed
// CHECK: nn.add {{.*}}dist.seed = #dist.seed<"[4?, 5@tp, 12?]">
// CHECK: nn.layer_norm {{.*}}dist.seed = #dist.seed<"[4?, 5@tp, 12?]">
// CHECK: nn.transpose {{.*}}dist.seed = #dist.seed<"[12?, 53@tp]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 5?, 53@tp]">
// CHECK-NOT: dist.seed
module {
  func.func @main(%ids: tensor<4x5xi64>, %angles: tensor<1x1x5x6xf32>) -> tensor<4x5x53xf32> {
    %table = nn.parameter "table" stored <file = "w", bytes = 2544, hashes = [1]> : tensor<53x12xf32>
    %query = nn.parameter "query" stored <file = "w", bytes = 576, hashes = [1]> : tensor<12x12xf32>
    %key = nn.parameter "key" stored <file = "w", bytes = 576, hashes = [1]> : tensor<12x12xf32>
    %value = nn.parameter "value" stored <file = "w", bytes = 576, hashes = [1]> : tensor<12x12xf32>
    %out = nn.parameter "out" stored <file = "w", bytes = 576, hashes = [1]> : tensor<12x12xf32>
    %x = nn.embedding %table, %ids {vocabulary = 53 : i64} : tensor<53x12xf32>, tensor<4x5xi64> -> tensor<4x5x12xf32>
    %n = nn.layer_norm %x {epsilon = 1.0e-5 : f64} : tensor<4x5x12xf32> -> tensor<4x5x12xf32>
    %q0 = nn.matmul %n, %query : tensor<4x5x12xf32>, tensor<12x12xf32> -> tensor<4x5x12xf32>
    %k0 = nn.matmul %n, %key : tensor<4x5x12xf32>, tensor<12x12xf32> -> tensor<4x5x12xf32>
    %v0 = nn.matmul %n, %value : tensor<4x5x12xf32>, tensor<12x12xf32> -> tensor<4x5x12xf32>
    %q1 = nn.reshape %q0 : tensor<4x5x12xf32> -> tensor<4x5x2x6xf32>
    %k1 = nn.reshape %k0 : tensor<4x5x12xf32> -> tensor<4x5x2x6xf32>
    %v1 = nn.reshape %v0 : tensor<4x5x12xf32> -> tensor<4x5x2x6xf32>
    %q2 = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x5x2x6xf32> -> tensor<4x2x5x6xf32>
    %k2 = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x5x2x6xf32> -> tensor<4x2x5x6xf32>
    %v2 = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x5x2x6xf32> -> tensor<4x2x5x6xf32>
    %q = nn.mul %q2, %angles : tensor<4x2x5x6xf32>, tensor<1x1x5x6xf32> -> tensor<4x2x5x6xf32>
    %a = nn.attention %q, %k2, %v2 {causal_offset = 0 : i64, scale = 0.4 : f64} : tensor<4x2x5x6xf32>, tensor<4x2x5x6xf32>, tensor<4x2x5x6xf32> -> tensor<4x2x5x6xf32>
    %a1 = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x2x5x6xf32> -> tensor<4x5x2x6xf32>
    %a2 = nn.reshape %a1 : tensor<4x5x2x6xf32> -> tensor<4x5x12xf32>
    %o = nn.matmul %a2, %out : tensor<4x5x12xf32>, tensor<12x12xf32> -> tensor<4x5x12xf32>
    %r = nn.add %x, %o : tensor<4x5x12xf32>, tensor<4x5x12xf32> -> tensor<4x5x12xf32>
    %m = nn.layer_norm %r {epsilon = 1.0e-5 : f64} : tensor<4x5x12xf32> -> tensor<4x5x12xf32>
    %t = nn.transpose %table {permutation = array<i64: 1, 0>} : tensor<53x12xf32> -> tensor<12x53xf32>
    %y = nn.matmul %m, %t : tensor<4x5x12xf32>, tensor<12x53xf32> -> tensor<4x5x53xf32>
    return %y : tensor<4x5x53xf32>
  }
}
