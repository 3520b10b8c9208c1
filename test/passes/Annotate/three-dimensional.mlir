// RUN: hpc-opt %s --hpc-build-mesh="degrees=tp=8 layout=3d" --hpc-annotate-batch --hpc-annotate-tensor-parallel="layout=3d" | FileCheck %s
// RUN: hpc-opt %s --hpc-build-mesh="degrees=tp=2 layout=3d:2x1x1" --hpc-annotate-batch --hpc-annotate-tensor-parallel="layout=3d:2x1x1" | FileCheck %s --check-prefix=ROWS

// x cuts rows of all values and stored weights. Between products z cuts the hidden dim and y rows, or the other way round; a product itself has the rows of x, and its readers
// share them out. A table that is a head's weight has one layout for both: its lookup sums over y.
// CHECK: #dist.mesh<"mb=1:time, dp=1:data, cp=1:sequence, tp.x=2:data, tp.y=2:tensor, tp.z=2:tensor">
// CHECK: %arg0: tensor<8x5xi64> {dist.seed = #dist.seed<"[8@tp.x, 5?]">
// CHECK-DAG: nn.parameter "table" {{.*}}dist.seed = #dist.seed<"[53@(tp.y, tp.x), 12@tp.z]">
// CHECK-DAG: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[12@(tp.z, tp.x), 20@tp.y]">
// CHECK-DAG: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[20@(tp.y, tp.x), 12@tp.z]">
// CHECK: nn.embedding {{.*}}dist.read_seed = #dist.seed<"[8@(tp.x, tp.y), 5?, 12?]">, dist.seed = #dist.seed<"[8@tp.x, 5?, 12@tp.z]">
// CHECK: nn.layer_norm {{.*}}dist.seed = #dist.seed<"[8@(tp.x, tp.y), 5?, 12@tp.z]">
// CHECK: nn.matmul {{.*}}dist.read_seed = #dist.seed<"[8@(tp.x, tp.z), 5?, 20?]">, dist.seed = #dist.seed<"[8@tp.x, 5?, 20@tp.y]">
// CHECK: nn.gelu {{.*}}dist.seed = #dist.seed<"[8@(tp.x, tp.z), 5?, 20@tp.y]">
// CHECK: nn.matmul {{.*}}dist.read_seed = #dist.seed<"[8@(tp.x, tp.y), 5?, 12?]">, dist.seed = #dist.seed<"[8@tp.x, 5?, 12@tp.z]">
// CHECK: nn.add {{.*}}dist.seed = #dist.seed<"[8@(tp.x, tp.y), 5?, 12@tp.z]">
// CHECK: nn.layer_norm {{.*}}dist.seed = #dist.seed<"[8@(tp.x, tp.y), 5?, 12@tp.z]">
// CHECK: nn.matmul {{.*}}dist.read_seed = #dist.seed<"[8@(tp.x, tp.z), 5?, 53?]">, dist.seed = #dist.seed<"[8@tp.x, 5?, 53@tp.y]">

// With x alone the layout is data parallelism whose weights are stored in pieces.
// ROWS-DAG: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[12@tp.x, 20?]">
// ROWS-DAG: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[20@tp.x, 12?]">
// ROWS: nn.layer_norm {{.*}}dist.seed = #dist.seed<"[8@tp.x, 5?, 12?]">
module {
  func.func @main(%ids: tensor<8x5xi64>) -> tensor<8x5x53xf32> {
    %table = nn.parameter "table" stored <file = "w", bytes = 2544, hashes = [1]> : tensor<53x12xf32>
    %up = nn.parameter "up" stored <file = "w", bytes = 960, hashes = [1]> : tensor<12x20xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 960, hashes = [1]> : tensor<20x12xf32>
    %x = nn.embedding %table, %ids {vocabulary = 53 : i64} : tensor<53x12xf32>, tensor<8x5xi64> -> tensor<8x5x12xf32>
    %n = nn.layer_norm %x {epsilon = 1.0e-5 : f64} : tensor<8x5x12xf32> -> tensor<8x5x12xf32>
    %u = nn.matmul %n, %up : tensor<8x5x12xf32>, tensor<12x20xf32> -> tensor<8x5x20xf32>
    %g = nn.gelu %u : tensor<8x5x20xf32> -> tensor<8x5x20xf32>
    %d = nn.matmul %g, %down : tensor<8x5x20xf32>, tensor<20x12xf32> -> tensor<8x5x12xf32>
    %r = nn.add %x, %d : tensor<8x5x12xf32>, tensor<8x5x12xf32> -> tensor<8x5x12xf32>
    %m = nn.layer_norm %r {epsilon = 1.0e-5 : f64} : tensor<8x5x12xf32> -> tensor<8x5x12xf32>
    %t = nn.transpose %table {permutation = array<i64: 1, 0>} : tensor<53x12xf32> -> tensor<12x53xf32>
    %y = nn.matmul %m, %t : tensor<8x5x12xf32>, tensor<12x53xf32> -> tensor<8x5x53xf32>
    return %y : tensor<8x5x53xf32>
  }
}
