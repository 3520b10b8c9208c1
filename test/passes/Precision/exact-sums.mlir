// RUN: hpc-opt %s --hpc-exact-sums -split-input-file | FileCheck %s

// A product of f32 is one of whole numbers in f64: k = 4 terms leave (53 - 2) / 2 = 25 bits, the largest of each row and column decides their unit. Were the sum rounded
// before it is complete (no cast stands before the units), ranks that hold a part of k would round otherwise.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>
// CHECK: %[[ABS:.*]] = nn.abs %[[X]]
// CHECK: %[[TOP:.*]] = nn.reduce max %[[ABS]] {axes = array<i64: 2>} : tensor<2x3x4xf32> -> tensor<2x3x1xf32>
// CHECK: %[[BITS:.*]] = nn.bitcast %[[TOP]] : tensor<2x3x1xf32> -> tensor<2x3x1xi32>
// CHECK: dense<2139095040>
// CHECK: dense<0x4170000000000000> : tensor<f64>
// CHECK: %[[A:.*]] = nn.round {{.*}} : tensor<2x3x4xf64>
// CHECK: nn.reduce max %{{.*}} {axes = array<i64: 0>} : tensor<4x5xf32> -> tensor<1x5xf32>
// CHECK: %[[B:.*]] = nn.round {{.*}} : tensor<4x5xf64>
// CHECK: %[[SUM:.*]] = nn.matmul %[[A]], %[[B]] : tensor<2x3x4xf64>, tensor<4x5xf64> -> tensor<2x3x5xf64>
// CHECK: nn.mul %[[SUM]]
// CHECK: nn.cast {{.*}} {dist.seed = #dist.sharding<"[2, 3, 5]">} : tensor<2x3x5xf64> -> tensor<2x3x5xf32>
func.func @main(%x: tensor<2x3x4xf32> {nn.name = "x", nn.dims = ["batch", "3", "4"]}) -> tensor<2x3x5xf32> {
  %w = nn.parameter "w" stored <file = "w", bytes = 80, hashes = [0]> : tensor<4x5xf32>
  %y = nn.matmul %x, %w {dist.seed = #dist.sharding<"[2, 3, 5]">} : tensor<2x3x4xf32>, tensor<4x5xf32> -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// -----

// A gradient of a weight is a product over the batch: one for each of its rows, in two words on fixed grids, each complete before the two meet.
// CHECK-LABEL: func.func @main
// CHECK: %[[LHS:.*]] = nn.reshape %{{.*}} : tensor<6x4xf32> -> tensor<2x3x4xf32>
// CHECK: nn.matmul {{.*}} {transpose_lhs} : tensor<2x3x4xf64>, tensor<2x3x5xf64> -> tensor<2x4x5xf64>
// CHECK: nn.compare lt
// CHECK: nn.reduce sum {{.*}} {axes = array<i64: 0>} : tensor<2x4x5xf64> -> tensor<1x4x5xf64>
// CHECK: nn.reduce sum {{.*}} {axes = array<i64: 0>} : tensor<2x4x5xf64> -> tensor<1x4x5xf64>
// CHECK: %[[HIGH:.*]] = nn.cast {{.*}} : tensor<4x5xf64> -> tensor<4x5xf32>
// CHECK: %[[LOW:.*]] = nn.cast {{.*}} : tensor<4x5xf64> -> tensor<4x5xf32>
// CHECK: %[[DW:.*]] = nn.add %[[HIGH]], %[[LOW]]
// CHECK: return %[[DW]]
func.func @main(%x: tensor<2x3x4xf32> {nn.name = "x", nn.dims = ["batch", "3", "4"]}, %g: tensor<2x3x5xf32> {nn.name = "g", nn.dims = ["batch", "3", "5"]}) -> tensor<4x5xf32> {
  %a = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %b = nn.reshape %g : tensor<2x3x5xf32> -> tensor<6x5xf32>
  %dw = nn.matmul %a, %b {transpose_lhs} : tensor<6x4xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
  return %dw : tensor<4x5xf32>
}

// -----

// Columns alone are added by the largest of them; the batch, too, by words.
// CHECK-LABEL: func.func @main
// CHECK: nn.reduce max {{.*}} {axes = array<i64: 1>}
// CHECK: nn.reduce sum {{.*}} {axes = array<i64: 1>} : tensor<2x3xf64> -> tensor<2x1xf64>
// CHECK-NOT: nn.reduce max
// CHECK: nn.reduce sum {{.*}} {axes = array<i64: 0, 1>} : tensor<2x3xf64> -> tensor<1x1xf64>
// CHECK: nn.reduce sum {{.*}} {axes = array<i64: 0, 1>} : tensor<2x3xf64> -> tensor<1x1xf64>
func.func @main(%x: tensor<2x3xf32> {nn.name = "x", nn.dims = ["batch", "3"]}) -> (tensor<2x1xf32>, tensor<1x1xf32>) {
  %rows = nn.reduce sum %x {axes = array<i64: 1>} : tensor<2x3xf32> -> tensor<2x1xf32>
  %all = nn.reduce sum %x {axes = array<i64: 0, 1>} : tensor<2x3xf32> -> tensor<1x1xf32>
  return %rows, %all : tensor<2x1xf32>, tensor<1x1xf32>
}

// -----

// k = 1,024 would leave 21 bits: each factor is two numbers then, and there are three products. A sum over ranks stands before the round of either, which is whole already.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = nn.round {{.*}} : tensor<2x1024xf64>
// CHECK: nn.sub %{{.*}}, %[[A]]
// CHECK: %[[A_REST:.*]] = nn.round {{.*}} : tensor<2x1024xf64>
// CHECK: %[[B:.*]] = nn.round {{.*}} : tensor<1024x5xf64>
// CHECK: %[[B_REST:.*]] = nn.round {{.*}} : tensor<1024x5xf64>
// CHECK: %[[LARGE:.*]] = nn.matmul %[[A]], %[[B]]
// CHECK: %[[SMALL:.*]] = nn.add %{{.*}}, %{{.*}} : tensor<2x5xf64>
// CHECK: nn.round %[[LARGE]]
// CHECK: nn.round %[[SMALL]]
func.func @main(%x: tensor<2x1024xf32> {nn.name = "x", nn.dims = ["batch", "k"]}) -> tensor<2x5xf32> {
  %w = nn.parameter "w" stored <file = "w", bytes = 20480, hashes = [0]> : tensor<1024x5xf32>
  %y = nn.matmul %x, %w : tensor<2x1024xf32>, tensor<1024x5xf32> -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

// -----

// A single number of the batch, as a loss, has three words: its terms may be as large as 2^70.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: nn.reduce sum {{.*}} {axes = array<i64: 0, 1>} : tensor<2x3xf64> -> tensor<1x1xf64>
func.func @main(%x: tensor<2x3xf32> {nn.name = "x", nn.dims = ["batch", "3"]}) -> tensor<1x1xf32> {
  %all = nn.reduce sum %x {axes = array<i64: 0, 1>} : tensor<2x3xf32> -> tensor<1x1xf32>
  return %all : tensor<1x1xf32>
}

// -----

// Attention's gradient adds up queries and the heads of a group in f32: sums of parts would be rounded otherwise, so nothing cuts what it adds up.
// CHECK-LABEL: func.func @main
// CHECK: nn.attention %{{.*}} {causal_offset = 0 : i64, scale = 5.000000e-01 : f64}
// CHECK: nn.attention_grad {{.*}} {causal_offset = 0 : i64, scale = 5.000000e-01 : f64, whole_sums}
func.func @main(%q: tensor<2x3x4x8xf32> {nn.name = "q", nn.dims = ["batch", "3", "4", "8"]}, %k: tensor<2x1x4x8xf32> {nn.name = "k", nn.dims = ["batch", "1", "4", "8"]})
    -> (tensor<2x3x4x8xf32>, tensor<2x1x4x8xf32>) {
  %o = nn.attention %q, %k, %k {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<2x3x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32> -> tensor<2x3x4x8xf32>
  %d:3 = nn.attention_grad %q, %k, %k, %o {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<2x3x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x3x4x8xf32>
      -> tensor<2x3x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>
  return %d#0, %d#1 : tensor<2x3x4x8xf32>, tensor<2x1x4x8xf32>
}
