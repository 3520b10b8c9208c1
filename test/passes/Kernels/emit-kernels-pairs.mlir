// REQUIRES: bf16pairs
// RUN: hpc-opt %s -split-input-file --hpc-emit-kernels=print-kernels -o /dev/null 2>&1 | FileCheck %s
// RUN: hpc-opt %s -split-input-file --hpc-emit-kernels | FileCheck %s --check-prefix=NEEDS
// RUN: hpc-opt %s -split-input-file --hpc-emit-kernels="cpu=x86-64-v3 print-kernels" 2>&1 | FileCheck %s --check-prefix=V3

// Where all is bf16, attention multiplies pairs of channels, which lie beside each other in memory, and pairs of keys' weights, rounded two vectors at a time.
// V3-NOT: avx512
// CHECK-LABEL: @attention_0.rows
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> f32
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%{{.*}}, %{{.*}}, %{{.*}}) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// NEEDS: hpc.cpu_features = [{{.*}}"avx512vl", "avx512_bf16"]
func.func @pairs(%x: tensor<1x2x40x8xbf16>) -> tensor<1x2x40x8xbf16> {
  %0 = nn.fused "attention_0" (%x) : (tensor<1x2x40x8xbf16>) -> tensor<1x2x40x8xbf16> {
  ^bb0(%a: tensor<1x2x40x8xbf16>):
    %r = nn.attention %a, %a, %a {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<1x2x40x8xbf16>, tensor<1x2x40x8xbf16>, tensor<1x2x40x8xbf16> -> tensor<1x2x40x8xbf16>
    nn.yield %r : tensor<1x2x40x8xbf16>
  }
  return %0 : tensor<1x2x40x8xbf16>
}

// -----

// A result of f32 keeps what rounded weights would lose; and code that needs no pairs runs on machines that have none.
// CHECK-LABEL: @attention_0.rows
// CHECK-NOT: avx512bf16
// NEEDS: hpc.cpu_features = [{{.*}}"avx512vl"]
func.func @wide(%x: tensor<1x2x40x8xbf16>) -> tensor<1x2x40x8xf32> {
  %0 = nn.fused "attention_0" (%x) : (tensor<1x2x40x8xbf16>) -> tensor<1x2x40x8xf32> {
  ^bb0(%a: tensor<1x2x40x8xbf16>):
    %r = nn.attention %a, %a, %a {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<1x2x40x8xbf16>, tensor<1x2x40x8xbf16>, tensor<1x2x40x8xbf16> -> tensor<1x2x40x8xf32>
    nn.yield %r : tensor<1x2x40x8xf32>
  }
  return %0 : tensor<1x2x40x8xf32>
}
