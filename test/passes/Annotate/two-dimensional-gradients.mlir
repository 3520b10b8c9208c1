// RUN: hpc-opt %s --hpc-build-mesh="degrees=tp=6 layout=2d:2x3" --hpc-annotate-batch --hpc-annotate-tensor-parallel="layout=2d:2x3" | FileCheck %s
// RUN: hpc-opt %s --hpc-build-mesh="degrees=tp=8 layout=2.5d:1x2x4" --hpc-annotate-batch --hpc-annotate-tensor-parallel="layout=2.5d:1x2x4" | FileCheck %s --check-prefix=DEPTH

// Gradients of a step. The product that sums over the columns of a weight leaves y to its readers; the one that makes a weight's gradient has y at the columns of the weight,
// through its scale and the transpose before it. A head cuts its table's vocabulary; the lookup leaves the
// columns to its readers, and its gradient adds to a rank's own rows.
// A vector that is worth a collective is stored in pieces, too.
// CHECK: %arg0: tensor<4x5xi64> {dist.seed = #dist.seed<"[4@tp.x, 5?]">
// CHECK-DAG: nn.parameter "table" {{.*}}dist.seed = #dist.seed<"[53@tp.y, 12@tp.x]">
// CHECK-DAG: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[12@tp.x, 20000@tp.y]">
// CHECK-DAG: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[12@tp.y, 20000@tp.x]">
// CHECK-DAG: nn.parameter "bias" {{.*}}dist.seed = #dist.seed<"[20000@(tp.y, tp.x)]">
// CHECK: nn.embedding {{.*}}dist.read_seed = #dist.seed<"[4?, 5?, 12@tp.y]">, dist.seed = #dist.seed<"[4?, 5?, 12]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 5?, 20000@tp.y]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 5?, 12@tp.y]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 5?, 53@tp.y]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 5?, 12]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[4?, 5?, 20000]">
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[20000?, 12@tp.y]">
// CHECK: nn.mul {{.*}}dist.seed = #dist.seed<"[12@tp.y, 20000?]">
// CHECK: nn.embedding_grad {{.*}}dist.seed = #dist.seed<"[53@tp.y, 12?]">
// CHECK-NOT: dist.seed

// z cuts rows and stores nothing in pieces; x of size 1 stores none either.
// DEPTH: #dist.mesh<"mb=1:time, dp=1:data, cp=1:sequence, tp.x=1:data, tp.y=2:tensor, tp.z=4:data">
// DEPTH: %arg0: tensor<4x5xi64> {dist.seed = #dist.seed<"[4@tp.z, 5?]">
// DEPTH: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[12?, 20000@tp.y]">
module {
  func.func @main(%ids: tensor<4x5xi64>) -> (tensor<4x5x53xf32>, tensor<12x20000xf32> {nn.gradient = "down"}, tensor<4x5x20000xf32>, tensor<53x12xf32> {nn.gradient = "table"}) {
    %table = nn.parameter "table" stored <file = "w", bytes = 2544, hashes = [1]> : tensor<53x12xf32>
    %up = nn.parameter "up" stored <file = "w", bytes = 960000, hashes = [1]> : tensor<12x20000xf32>
    %bias = nn.parameter "bias" stored <file = "w", bytes = 80000, hashes = [1]> : tensor<20000xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 960000, hashes = [1]> : tensor<12x20000xf32>
    %scale = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
    %x = nn.embedding %table, %ids {vocabulary = 53 : i64} : tensor<53x12xf32>, tensor<4x5xi64> -> tensor<4x5x12xf32>
    %u = nn.matmul %x, %up : tensor<4x5x12xf32>, tensor<12x20000xf32> -> tensor<4x5x20000xf32>
    %b = nn.add %u, %bias : tensor<4x5x20000xf32>, tensor<20000xf32> -> tensor<4x5x20000xf32>
    %d = nn.matmul %b, %down {transpose_rhs} : tensor<4x5x20000xf32>, tensor<12x20000xf32> -> tensor<4x5x12xf32>
    %y = nn.matmul %d, %table {transpose_rhs} : tensor<4x5x12xf32>, tensor<53x12xf32> -> tensor<4x5x53xf32>
    %dd = nn.matmul %y, %table : tensor<4x5x53xf32>, tensor<53x12xf32> -> tensor<4x5x12xf32>
    %db = nn.matmul %dd, %down : tensor<4x5x12xf32>, tensor<12x20000xf32> -> tensor<4x5x20000xf32>
    %rows = nn.reshape %dd : tensor<4x5x12xf32> -> tensor<20x12xf32>
    %inputs = nn.reshape %b : tensor<4x5x20000xf32> -> tensor<20x20000xf32>
    %dw = nn.matmul %inputs, %rows {transpose_lhs} : tensor<20x20000xf32>, tensor<20x12xf32> -> tensor<20000x12xf32>
    %turned = nn.transpose %dw {permutation = array<i64: 1, 0>} : tensor<20000x12xf32> -> tensor<12x20000xf32>
    %g = nn.mul %turned, %scale : tensor<12x20000xf32>, tensor<f32> -> tensor<12x20000xf32>
    %dt = nn.embedding_grad %dd, %ids {vocabulary = 53 : i64} : tensor<4x5x12xf32>, tensor<4x5xi64> -> tensor<53x12xf32>
    return %y, %g, %db, %dt : tensor<4x5x53xf32>, tensor<12x20000xf32>, tensor<4x5x20000xf32>, tensor<53x12xf32>
  }
}
