// RUN: hpc-opt %s -split-input-file --hpc-build-mesh="degrees=tp=6 layout=2d:2x3" --hpc-annotate-batch --hpc-annotate-tensor-parallel="layout=2d:2x3" | FileCheck %s
// RUN: hpc-opt %s -split-input-file --hpc-build-mesh="degrees=tp=2 layout=2d:2x1" --hpc-annotate-batch --hpc-annotate-tensor-parallel="layout=2d:2x1" | FileCheck %s --check-prefix=ROWS

// x cuts the batch and stored weights, y the columns of every product and the rows of norms. A table that is a head's weight has one layout for both: y cuts the
// vocabulary, so that the lookup sums over y, and who reads its result cuts the columns. A residual stays in parts however large it is: it is seeded, so that nobody weighs it.
// CHECK: #dist.mesh<"mb=1:time, dp=1:data, cp=1:sequence, tp.x=2:data, tp.y=3:tensor">
// CHECK: %arg0: tensor<4x5xi64> {dist.seed = #dist.seed<"[4@tp.x, 5?]">
// CHECK-DAG: nn.parameter "table" {{.*}}dist.seed = #dist.seed<"[53@tp.y, 12@tp.x]">
// CHECK-DAG: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[12@tp.x, 20@tp.y]">
// CHECK-DAG: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[20@tp.x, 12@tp.y]">
// CHECK: nn.embedding {{.*}}dist.read_seed = #dist.seed<"[4?, 5?, 12@tp.y]">, dist.seed = #dist.seed<"[4?, 5?, 12]">
// CHECK: nn.layer_norm {{.*}}dist.seed = #dist.seed<"[4?, 5?, 12@tp.y]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 5?, 20@tp.y]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 5?, 12@tp.y]">
// CHECK: nn.add {{.*}}dist.seed = #dist.seed<"[4?, 5?, 12@tp.y]">
// CHECK: nn.layer_norm {{.*}}dist.seed = #dist.seed<"[4?, 5?, 12@tp.y]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 5?, 53@tp.y]">
// CHECK-NOT: dist.seed

// A head of fewer logits than the lookup and the head's operand have numbers sums them over y, and who reads its result cuts the vocabulary; its table is cut in columns.
// CHECK: return
// CHECK: nn.parameter "table" {{.*}}dist.seed = #dist.seed<"[23@tp.x, 12@tp.y]">
// CHECK: nn.matmul {{.*}}dist.read_seed = #dist.seed<"[4?, 5?, 23@tp.y]">, dist.seed = #dist.seed<"[4?, 5?, 23]">

// Without columns to cut, weights are stored in pieces all the same.
// ROWS: #dist.mesh<"mb=1:time, dp=1:data, cp=1:sequence, tp.x=2:data, tp.y=1:tensor">
// ROWS-DAG: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[12@tp.x, 20?]">
// ROWS-DAG: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[20@tp.x, 12?]">
// ROWS-NOT: nn.matmul {{.*}}dist.seed
module {
  func.func @main(%ids: tensor<4x5xi64>) -> tensor<4x5x53xf32> {
    %table = nn.parameter "table" stored <file = "w", bytes = 2544, hashes = [1]> : tensor<53x12xf32>
    %up = nn.parameter "up" stored <file = "w", bytes = 960, hashes = [1]> : tensor<12x20xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 960, hashes = [1]> : tensor<20x12xf32>
    %x = nn.embedding %table, %ids {vocabulary = 53 : i64} : tensor<53x12xf32>, tensor<4x5xi64> -> tensor<4x5x12xf32>
    %n = nn.layer_norm %x {epsilon = 1.0e-5 : f64} : tensor<4x5x12xf32> -> tensor<4x5x12xf32>
    %u = nn.matmul %n, %up : tensor<4x5x12xf32>, tensor<12x20xf32> -> tensor<4x5x20xf32>
    %g = nn.gelu %u : tensor<4x5x20xf32> -> tensor<4x5x20xf32>
    %d = nn.matmul %g, %down : tensor<4x5x20xf32>, tensor<20x12xf32> -> tensor<4x5x12xf32>
    %r = nn.add %x, %d : tensor<4x5x12xf32>, tensor<4x5x12xf32> -> tensor<4x5x12xf32>
    %m = nn.layer_norm %r {epsilon = 1.0e-5 : f64} : tensor<4x5x12xf32> -> tensor<4x5x12xf32>
    %t = nn.transpose %table {permutation = array<i64: 1, 0>} : tensor<53x12xf32> -> tensor<12x53xf32>
    %y = nn.matmul %m, %t : tensor<4x5x12xf32>, tensor<12x53xf32> -> tensor<4x5x53xf32>
    return %y : tensor<4x5x53xf32>
  }
}

// -----

module {
  func.func @main(%ids: tensor<4x5xi64>) -> tensor<4x5x23xf32> {
    %table = nn.parameter "table" stored <file = "w", bytes = 1104, hashes = [1]> : tensor<23x12xf32>
    %x = nn.embedding %table, %ids {vocabulary = 23 : i64} : tensor<23x12xf32>, tensor<4x5xi64> -> tensor<4x5x12xf32>
    %m = nn.layer_norm %x {epsilon = 1.0e-5 : f64} : tensor<4x5x12xf32> -> tensor<4x5x12xf32>
    %t = nn.transpose %table {permutation = array<i64: 1, 0>} : tensor<23x12xf32> -> tensor<12x23xf32>
    %y = nn.matmul %m, %t : tensor<4x5x12xf32>, tensor<12x23xf32> -> tensor<4x5x23xf32>
    return %y : tensor<4x5x23xf32>
  }
}
