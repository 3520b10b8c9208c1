// Single passes keep and find code as a whole compilation does: what is found is what would be made.
// RUN: rm -rf %t && mkdir %t
// RUN: hpc-opt %s --hpc-emit-kernels=cpu=x86-64-v3 -o %t/none.mlir
// RUN: hpc-opt %s --hpc-emit-kernels="cpu=x86-64-v3 kernel-cache=%t/cache" -o %t/fills.mlir
// RUN: hpc-opt %s --hpc-emit-kernels="cpu=x86-64-v3 kernel-cache=%t/cache" -o %t/reads.mlir
// RUN: cmp %t/none.mlir %t/fills.mlir
// RUN: cmp %t/none.mlir %t/reads.mlir
// RUN: ls %t/cache | count 1

// Under a flag of LLVM they get its code, not what was kept without it; neither is its code kept.
// RUN: hpc-opt %s --hpc-emit-kernels=cpu=x86-64-v3 --vectorize-loops=false -o %t/scalar.mlir
// RUN: not cmp %t/none.mlir %t/scalar.mlir
// RUN: hpc-opt %s --hpc-emit-kernels="cpu=x86-64-v3 kernel-cache=%t/cache" --vectorize-loops=false -o %t/flag.mlir 2>&1 | FileCheck %s
// CHECK: remark: --kernel-cache={{.*}}cache is not used: code follows from LLVM's own flags too (--vectorize-loops), which its keys do not know
// RUN: cmp %t/scalar.mlir %t/flag.mlir
// RUN: ls %t/cache | count 1

// MLIR's flags change no code.
// RUN: hpc-opt %s --mlir-disable-threading --hpc-emit-kernels="cpu=x86-64-v3 kernel-cache=%t/cache" -o %t/mlir.mlir 2>&1 | count 0
// RUN: cmp %t/none.mlir %t/mlir.mlir
func.func @main(%x: tensor<64x33xf32>) -> tensor<64x33xf32> {
  %0 = nn.fused "f_0" (%x) : (tensor<64x33xf32>) -> tensor<64x33xf32> {
  ^bb0(%a: tensor<64x33xf32>):
    %1 = nn.exp %a : tensor<64x33xf32> -> tensor<64x33xf32>
    nn.yield %1 : tensor<64x33xf32>
  }
  return %0 : tensor<64x33xf32>
}
