// RUN: hpc-opt %s --hpc-raise-cross-entropy --split-input-file | FileCheck %s

// One class of each row, gathered from log(softmax). A label that may be negative counts from the last class, as the gather's does; one that is clamped is taken as it is.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x4x7xf32>, %[[LABELS:[^:]*]]: tensor<2x4x1x1xi64>
// CHECK-NOT: nn.exp
// CHECK: %[[ROWS:.*]] = nn.reshape %[[LABELS]] : tensor<2x4x1x1xi64> -> tensor<2x4xi64>
// CHECK-DAG: %[[NEGATIVE:.*]] = nn.compare lt %[[ROWS]]
// CHECK-DAG: %[[RAISED:.*]] = nn.add %[[ROWS]]
// CHECK: %[[CLASSES:.*]] = nn.select %[[NEGATIVE]], %[[RAISED]], %[[ROWS]]
// CHECK: %[[LOSS:.*]], %{{.*}}, %{{.*}} = nn.cross_entropy %[[X]], %[[CLASSES]] {ignore_index = -9223372036854775808 : i64}
// CHECK: %[[LOG:.*]] = nn.neg %[[LOSS]]
// CHECK: %[[FIRST:.*]] = nn.reshape %[[LOG]] : tensor<2x4xf32> -> tensor<2x4x1xf32>
// CHECK: %[[CLAMPED:.*]] = nn.max
// CHECK-NOT: nn.select
// CHECK: nn.cross_entropy %[[X]], %{{.*}} {ignore_index
// CHECK: return %[[FIRST]]
func.func @main(%x: tensor<2x4x7xf32>, %labels: tensor<2x4x1x1xi64>) -> (tensor<2x4x1xf32>, tensor<2x4x1xf32>) {
  %top = nn.reduce max %x {axes = array<i64: 2>} : tensor<2x4x7xf32> -> tensor<2x4x1xf32>
  %low = nn.sub %x, %top : tensor<2x4x7xf32>, tensor<2x4x1xf32> -> tensor<2x4x7xf32>
  %e = nn.exp %low : tensor<2x4x7xf32> -> tensor<2x4x7xf32>
  %sum = nn.reduce sum %e {axes = array<i64: 2>} : tensor<2x4x7xf32> -> tensor<2x4x1xf32>
  %log = nn.log %sum : tensor<2x4x1xf32> -> tensor<2x4x1xf32>
  %logs = nn.sub %low, %log : tensor<2x4x7xf32>, tensor<2x4x1xf32> -> tensor<2x4x7xf32>
  %own = nn.gather_nd %logs, %labels {batch_dims = 2 : i64} : tensor<2x4x7xf32>, tensor<2x4x1x1xi64> -> tensor<2x4x1xf32>
  %zero = nn.constant dense<0> : tensor<i64> : tensor<i64>
  %clamped = nn.max %labels, %zero : tensor<2x4x1x1xi64>, tensor<i64> -> tensor<2x4x1x1xi64>
  %other = nn.gather_nd %logs, %clamped {batch_dims = 2 : i64} : tensor<2x4x7xf32>, tensor<2x4x1x1xi64> -> tensor<2x4x1xf32>
  return %own, %other : tensor<2x4x1xf32>, tensor<2x4x1xf32>
}

// -----

// Who reads all of the log-probabilities has them; two classes of a row are no label.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.cross_entropy
// CHECK: return
func.func @main(%x: tensor<4x7xf32>, %labels: tensor<4x1x1xi64>, %pairs: tensor<4x2x1xi64>) -> (tensor<4x1xf32>, tensor<4x7xf32>, tensor<4x2xf32>) {
  %top = nn.reduce max %x {axes = array<i64: 1>} : tensor<4x7xf32> -> tensor<4x1xf32>
  %low = nn.sub %x, %top : tensor<4x7xf32>, tensor<4x1xf32> -> tensor<4x7xf32>
  %e = nn.exp %low : tensor<4x7xf32> -> tensor<4x7xf32>
  %sum = nn.reduce sum %e {axes = array<i64: 1>} : tensor<4x7xf32> -> tensor<4x1xf32>
  %log = nn.log %sum : tensor<4x1xf32> -> tensor<4x1xf32>
  %logs = nn.sub %low, %log : tensor<4x7xf32>, tensor<4x1xf32> -> tensor<4x7xf32>
  %own = nn.gather_nd %logs, %labels {batch_dims = 1 : i64} : tensor<4x7xf32>, tensor<4x1x1xi64> -> tensor<4x1xf32>
  %again = nn.sub %low, %log : tensor<4x7xf32>, tensor<4x1xf32> -> tensor<4x7xf32>
  %two = nn.gather_nd %again, %pairs {batch_dims = 1 : i64} : tensor<4x7xf32>, tensor<4x2x1xi64> -> tensor<4x2xf32>
  return %own, %logs, %two : tensor<4x1xf32>, tensor<4x7xf32>, tensor<4x2xf32>
}

// -----

// Rows that a look-up takes whole are no labels' logits, though there are as many of them. A label that is clamped at -1 may still count from the end.
// CHECK-LABEL: func.func @main(
// CHECK: nn.constant dense<7> : tensor<i64>
// CHECK: nn.cross_entropy
// CHECK-NOT: nn.cross_entropy
// CHECK: return
func.func @main(%x: tensor<4x7xf32>, %z: tensor<4x7xf32>, %labels: tensor<4x1xi64>) -> (tensor<4x7xf32>, tensor<4x1xf32>) {
  %top = nn.reduce max %x {axes = array<i64: 1>} : tensor<4x7xf32> -> tensor<4x1xf32>
  %low = nn.sub %x, %top : tensor<4x7xf32>, tensor<4x1xf32> -> tensor<4x7xf32>
  %e = nn.exp %low : tensor<4x7xf32> -> tensor<4x7xf32>
  %sum = nn.reduce sum %e {axes = array<i64: 1>} : tensor<4x7xf32> -> tensor<4x1xf32>
  %log = nn.log %sum : tensor<4x1xf32> -> tensor<4x1xf32>
  %logs = nn.sub %low, %log : tensor<4x7xf32>, tensor<4x1xf32> -> tensor<4x7xf32>
  %rows = nn.gather_nd %logs, %labels {batch_dims = 0 : i64} : tensor<4x7xf32>, tensor<4x1xi64> -> tensor<4x7xf32>
  %top2 = nn.reduce max %z {axes = array<i64: 1>} : tensor<4x7xf32> -> tensor<4x1xf32>
  %low2 = nn.sub %z, %top2 : tensor<4x7xf32>, tensor<4x1xf32> -> tensor<4x7xf32>
  %e2 = nn.exp %low2 : tensor<4x7xf32> -> tensor<4x7xf32>
  %sum2 = nn.reduce sum %e2 {axes = array<i64: 1>} : tensor<4x7xf32> -> tensor<4x1xf32>
  %log2 = nn.log %sum2 : tensor<4x1xf32> -> tensor<4x1xf32>
  %logs2 = nn.sub %low2, %log2 : tensor<4x7xf32>, tensor<4x1xf32> -> tensor<4x7xf32>
  %two = nn.constant dense<2> : tensor<i64> : tensor<i64>
  %last = nn.constant dense<-1> : tensor<i64> : tensor<i64>
  %moved = nn.sub %labels, %two : tensor<4x1xi64>, tensor<i64> -> tensor<4x1xi64>
  %clamped = nn.max %moved, %last : tensor<4x1xi64>, tensor<i64> -> tensor<4x1xi64>
  %apart = nn.reshape %clamped : tensor<4x1xi64> -> tensor<4x1x1xi64>
  %own = nn.gather_nd %logs2, %apart {batch_dims = 1 : i64} : tensor<4x7xf32>, tensor<4x1x1xi64> -> tensor<4x1xf32>
  return %rows, %own : tensor<4x7xf32>, tensor<4x1xf32>
}
