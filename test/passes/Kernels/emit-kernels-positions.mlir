// Positions that are constants are the causal offset: the kernel is the same as one without them, and so is its description for a library. A compiler that does not see it would
// read a number in every call, and no library would take the attention.
// RUN: hpc-opt %s --split-input-file --hpc-emit-kernels | FileCheck %s
// RUN: split-file %s %t
// RUN: sed 's/ query_start .* {scale/ {scale/; /nn.constant/d; s/causal_offset = 1/causal_offset = 4/' %t/constants.mlir > %t/plain.mlir
// RUN: hpc-opt %t/constants.mlir --hpc-emit-kernels=print-kernels -o /dev/null 2> %t/constants.txt
// RUN: hpc-opt %t/plain.mlir --hpc-emit-kernels=print-kernels -o /dev/null 2> %t/plain.txt
// RUN: grep -c func.func %t/plain.txt && cmp %t/constants.txt %t/plain.txt

// CHECK-LABEL: @constants
// CHECK: #nn.attention<{{.*}}causal_offset = 4>
// CHECK-SAME: scalars = []
//--- constants.mlir
module attributes {hpc.target = "x86-64,ptx"} {
func.func @constants(%x: tensor<1x2x9x8xf32>) -> tensor<1x2x9x8xf32> {
  %0 = nn.fused "attention_0" (%x) : (tensor<1x2x9x8xf32>) -> tensor<1x2x9x8xf32> {
  ^bb0(%a: tensor<1x2x9x8xf32>):
    %p = nn.constant dense<5> : tensor<i64> : tensor<i64>
    %s = nn.constant dense<2.0> : tensor<f64> : tensor<f64>
    %r = nn.attention %a, %a, %a query_start %p : tensor<i64> key_start %s : tensor<f64> {scale = 0.5 : f64, causal_offset = 1 : i64} : tensor<1x2x9x8xf32>, tensor<1x2x9x8xf32>, tensor<1x2x9x8xf32> -> tensor<1x2x9x8xf32>
    nn.yield %r : tensor<1x2x9x8xf32>
  }
  return %0 : tensor<1x2x9x8xf32>
}
}

//--- moving.mlir
// -----

// The offset of cut queries is a number of the kernel, by coordinate; no library has such a diagonal.
// CHECK-LABEL: @moving
// CHECK-NOT: #nn.attention<
// CHECK: scalars = [#nn.scalar<offset of #dist.sharding<"[9@tp]">>]
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">, hpc.target = "ptx"} {
func.func @moving(%q: tensor<1x2x5x8xf32, #dist.sharding<"[1, 2, 9@tp, 8]">>, %k: tensor<1x2x9x8xf32, #dist.sharding<"[1, 2, 9, 8]">>) -> tensor<1x2x5x8xf32, #dist.sharding<"[1, 2, 9@tp, 8]">> {
  %0 = nn.fused "attention_1" (%q, %k) : (tensor<1x2x5x8xf32, #dist.sharding<"[1, 2, 9@tp, 8]">>, tensor<1x2x9x8xf32, #dist.sharding<"[1, 2, 9, 8]">>) -> tensor<1x2x5x8xf32, #dist.sharding<"[1, 2, 9@tp, 8]">> {
  ^bb0(%a: tensor<1x2x5x8xf32, #dist.sharding<"[1, 2, 9@tp, 8]">>, %b: tensor<1x2x9x8xf32, #dist.sharding<"[1, 2, 9, 8]">>):
    %o = dist.offset {dim = #dist.sharding<"[9@tp]">} : tensor<i64, #dist.sharding<"[]">>
    %r = nn.attention %a, %b, %b query_start %o : tensor<i64, #dist.sharding<"[]">> {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<1x2x5x8xf32, #dist.sharding<"[1, 2, 9@tp, 8]">>, tensor<1x2x9x8xf32, #dist.sharding<"[1, 2, 9, 8]">>, tensor<1x2x9x8xf32, #dist.sharding<"[1, 2, 9, 8]">> -> tensor<1x2x5x8xf32, #dist.sharding<"[1, 2, 9@tp, 8]">>
    nn.yield %r : tensor<1x2x5x8xf32, #dist.sharding<"[1, 2, 9@tp, 8]">>
  }
  return %0 : tensor<1x2x5x8xf32, #dist.sharding<"[1, 2, 9@tp, 8]">>
}
}
