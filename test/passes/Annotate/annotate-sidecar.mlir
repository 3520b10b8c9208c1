// RUN: split-file %s %t
// RUN: hpc-opt %t/program.mlir --hpc-annotate-sidecar=spec=%t/rules.json | FileCheck %t/program.mlir
// RUN: hpc-opt %t/program.mlir --hpc-annotate-sidecar=spec=%t/gather.json --hpc-propagate-shardings --hpc-insert-reshards | FileCheck %t/program.mlir --check-prefix=GATHER

//--- rules.json
{"version": 1, "params": [
  {"match": "h.*.fc.weight", "shard": [{"dim": -1, "of": [2, 3], "at": 1, "axis": "tp"}], "output_replicate": true},
  {"match": "head", "shard": [{"dim": 1, "axis": "tp"}]},
  {"match": "*.bias", "shard": [{"dim": 0, "axis": "tp"}], "inferred": true}, {"match": "*.norm", "shard": [], "inferred": true}]}
//--- gather.json
{"version": 1, "params": [{"match": "h.0.*", "shard": [{"dim": -1, "axis": "tp"}], "output_replicate": true}]}
//--- program.mlir
// CHECK: hpc.sidecar_places = {h.0.fc.weight = "{{.*}}rules.json:2", wte = "{{.*}}rules.json:3"}
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<3x4xf32>) -> tensor<3x6xf32> {
    // The user's word is closed, binding, and first; what it leaves uncut stays whole.
    // CHECK: nn.parameter "h.0.fc.weight" {{.*}}dist.seed = #dist.seed<"[4, (2, 3@tp)]", priority = 0, origin = "sidecar">
    %w = nn.parameter "h.0.fc.weight" stored <file = "w", bytes = 96, hashes = [0]> : tensor<4x6xf32>
    // What --write-spec wrote down of a vector is no seed: its cut follows from the weights once more.
    // CHECK: nn.parameter "h.0.bias"
    // CHECK-NOT: dist.seed
    // CHECK-SAME: : tensor<6xf32>
    %b = nn.parameter "h.0.bias" stored <file = "b", bytes = 24, hashes = [0]> : tensor<6xf32>
    // Where it cut nothing, nothing was decided.
    // CHECK: nn.parameter "h.0.norm"
    // CHECK-NOT: dist.seed
    // CHECK-SAME: : tensor<5xf32>
    %n = nn.parameter "h.0.norm" stored <file = "n", bytes = 20, hashes = [0]> : tensor<5xf32>
    // A rule on a name whose bytes are transposed means the dims of that name.
    // CHECK: nn.parameter "wte" {{.*}}dist.seed = #dist.seed<"[6@tp, 4]", priority = 0, origin = "sidecar">
    %t = nn.parameter "wte" stored <file = "t", bytes = 96, hashes = [0]> {aliases = ["head"], transposed_aliases = ["head"]} : tensor<6x4xf32>
    // The gather stands behind the bias, not between product and bias: there it would gather the bias too.
    // CHECK: nn.matmul
    // CHECK-NOT: dist.whole_output
    // CHECK: nn.add {{.*}}{dist.whole_output = array<i64: 1>, dist.whole_output_for = "h.0.fc.weight"}
    // GATHER: nn.matmul
    // GATHER-NEXT: nn.add
    // GATHER-NEXT: dist.reshard
    // GATHER-NEXT: nn.exp
    %0 = nn.matmul %x, %w : tensor<3x4xf32>, tensor<4x6xf32> -> tensor<3x6xf32>
    %1 = nn.add %0, %b : tensor<3x6xf32>, tensor<6xf32> -> tensor<3x6xf32>
    %2 = nn.exp %1 : tensor<3x6xf32> -> tensor<3x6xf32>
    %3 = nn.matmul %x, %t {transpose_rhs} : tensor<3x4xf32>, tensor<6x4xf32> -> tensor<3x6xf32>
    %4 = nn.mul %2, %3 : tensor<3x6xf32>, tensor<3x6xf32> -> tensor<3x6xf32>
    return %4 : tensor<3x6xf32>
  }
}
