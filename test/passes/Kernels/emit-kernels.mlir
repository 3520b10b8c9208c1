// RUN: hpc-opt %s --hpc-emit-kernels=cpu=x86-64-v3 | FileCheck %s
// RUN: hpc-opt %s --hpc-emit-kernels=cpu=x86-64-v3 > %t.1
// RUN: hpc-opt %s --hpc-emit-kernels=cpu=x86-64-v3 > %t.2
// RUN: cmp %t.1 %t.2
// RUN: hpc-opt %s --hpc-emit-kernels="cpu=x86-64-v3 print-kernels" -o %t.3 2>&1 | FileCheck %s --check-prefix=CODE

// The object, the features that it needs, rows and scalars of each region.
// CHECK: hpc.code = dense<"0x7F454C46
// CHECK-SAME: hpc.cpu_features = ["pni", "ssse3", "sse4_1", "sse4_2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe"]
// CHECK: nn.fused "softmax_6x33_0"(%arg0) {rows = 6 : i64, scalars = []}
// CHECK: nn.fused "tail_0"(%arg1) {rows = 4 : i64, scalars = [#nn.scalar<extent of #dist.sharding<"[5@tp]">>]}
// CHECK: nn.fused "rows_0"(%arg2, %arg3) {rows = 2 : i64, scalars = [#nn.scalar<offset of #dist.sharding<"[503@tp]">>]}

// Nothing may be reordered, sums included; nothing assumes that NaN or infinities do not occur. What two nodes compute is never contracted: the scaling
// by powers of two inside the exponential alone may be, which is exact. The 33 terms of a row are added up in 32 lanes.
// CODE-NOT: nnan
// CODE-NOT: ninf
// CODE: func.func private @softmax_6x33_0.rows
// CODE: arith.maxsi
// CODE: arith.subf %{{.*}}, %{{.*}} : f32
// CODE: arith.mulf %{{.*}}, %{{.*}} fastmath<contract>
// CODE: arith.mulf %{{.*}}, %{{.*}} fastmath<contract>
// CODE: arith.addf %{{.*}}, %{{.*}} : vector<16xf32>
// CODE-NOT: reassoc
// CODE-NOT: arith.subf {{.*}}fastmath
// CODE: arith.divf %{{.*}}, %{{.*}} : f32
// CODE: func.func @softmax_6x33_0(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)

// An id is data: the row is clamped into the table before it is read.
// CODE: func.func private @rows_0.rows
// CODE: %[[LOW:.*]] = arith.maxsi %{{.*}}, %c0_i64
// CODE: %[[ROW:.*]] = arith.minsi %[[LOW]], %c251_i64
// CODE: arith.muli %[[ROW]]
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
func.func @main(%x: tensor<6x33xf32>, %y: tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">>, %t: tensor<252x4xf32>, %i: tensor<2xi64>)
    -> (tensor<6x33xf32>, tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">>, tensor<2x4xf32>) {
  %0 = nn.fused "softmax_6x33_0" (%x) : (tensor<6x33xf32>) -> tensor<6x33xf32> {
  ^bb0(%a: tensor<6x33xf32>):
    %1 = nn.reduce max %a {axes = array<i64: 1>} : tensor<6x33xf32> -> tensor<6x1xf32>
    %2 = nn.sub %a, %1 : tensor<6x33xf32>, tensor<6x1xf32> -> tensor<6x33xf32>
    %3 = nn.exp %2 : tensor<6x33xf32> -> tensor<6x33xf32>
    %4 = nn.reduce sum %3 {axes = array<i64: 1>} : tensor<6x33xf32> -> tensor<6x1xf32>
    %5 = nn.div %3, %4 : tensor<6x33xf32>, tensor<6x1xf32> -> tensor<6x33xf32>
    nn.yield %5 : tensor<6x33xf32>
  }
  %6 = nn.fused "tail_0" (%y) : (tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">>) -> tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">> {
  ^bb0(%a: tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">>):
    %7 = dist.fill_tail %a {dims = array<i64: 1>, value = 0.0 : f32} : tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">> -> tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">>
    nn.yield %7 : tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">>
  }
  %8 = nn.fused "rows_0" (%t, %i) : (tensor<252x4xf32>, tensor<2xi64>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<252x4xf32>, %b: tensor<2xi64>):
    %o = dist.offset {dim = #dist.sharding<"[503@tp]">} : tensor<i64>
    %9 = nn.embedding %a, %b offset %o : tensor<i64> {vocabulary = 503 : i64} : tensor<252x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
    nn.yield %9 : tensor<2x4xf32>
  }
  return %0, %6, %8 : tensor<6x33xf32>, tensor<4x18xf32, #dist.sharding<"[4, (3, 5@tp, 2)]">>, tensor<2x4xf32>
}
}
