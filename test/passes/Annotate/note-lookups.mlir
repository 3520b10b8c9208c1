// RUN: hpc-opt %s --hpc-note-lookups --split-input-file | FileCheck %s

// A table's rows count from either end. What is looked up twice by the same is said once.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: {nn.lookups = [{begin = array<i64: 0, 0>, end = array<i64: 2, 8>, high = 7 : i64, low = -7 : i64, reader = "wte"}]}
func.func @main(%ids: tensor<2x8xi64>, %table: tensor<7x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
  %0 = nn.embedding %table, %ids {vocabulary = 7 : i64} : tensor<7x4xf32>, tensor<2x8xi64> -> tensor<2x8x4xf32> loc("wte")
  %1 = nn.embedding %table, %ids {vocabulary = 7 : i64} : tensor<7x4xf32>, tensor<2x8xi64> -> tensor<2x8x4xf32> loc("wte")
  return %0, %1 : tensor<2x8x4xf32>, tensor<2x8x4xf32>
}

// -----

// Labels that are shifted: the first column is never read, and the loss has a number of its own for what does not count.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: nn.lookups = [{begin = array<i64: 0, 1>, end = array<i64: 2, 3>, high = 5 : i64, ignored = -100 : i64, low = 0 : i64, reader = "cross_entropy"}]
func.func @main(%logits: tensor<2x3x5xf32>, %labels: tensor<2x3xi64>) -> tensor<2x3xf32> {
  %0 = nn.slice %labels {starts = array<i64: 0, 1>, steps = array<i64: 1, 1>} : tensor<2x3xi64> -> tensor<2x2xi64>
  %1 = nn.pad %0 {low = array<i64: 0, 0>, high = array<i64: 0, 1>, value = -100 : i64} : tensor<2x2xi64> -> tensor<2x3xi64>
  %loss, %top, %share = nn.cross_entropy %logits, %1 {ignore_index = -100 : i64} : tensor<2x3x5xf32>, tensor<2x3xi64> -> tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  return %loss : tensor<2x3xf32>
}

// -----

// Through a wider type and another shape all is still seen; two tables are two lookups.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: nn.lookups = [{begin = array<i64: 0>, end = array<i64: 4>, high = 3 : i64, low = -3 : i64, reader = "embedding"}, {begin = array<i64: 0>, end = array<i64: 4>, high = 9 : i64, low = -9 : i64, reader = "gather"}]
func.func @main(%ids: tensor<4xi32>, %data: tensor<2x9xf32>, %table: tensor<3x2xf32>) -> (tensor<2x2x2xf32>, tensor<4x2xf32>) {
  %0 = nn.cast %ids : tensor<4xi32> -> tensor<4xi64>
  %1 = nn.reshape %0 : tensor<4xi64> -> tensor<2x2xi64>
  %2 = nn.gather %data, %1 {axis = 1 : i64} : tensor<2x9xf32>, tensor<2x2xi64> -> tensor<2x2x2xf32>
  %3 = nn.embedding %table, %ids {vocabulary = 3 : i64} : tensor<3x2xf32>, tensor<4xi32> -> tensor<4x2xf32>
  return %2, %3 : tensor<2x2x2xf32>, tensor<4x2xf32>
}

// -----

// Nothing is said of numbers that are computed with, that a narrower type may change, or of which an unknown part is looked up; nor of data.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.lookups
// CHECK: return
func.func @main(%a: tensor<4xi64>, %b: tensor<4xi64>, %c: tensor<2x4xi64>, %d: tensor<4xi64>, %data: tensor<4xi64>) -> (tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<2xi64>) {
  %one = nn.constant dense<1> : tensor<4xi64> : tensor<4xi64>
  %0 = nn.add %a, %one : tensor<4xi64>, tensor<4xi64> -> tensor<4xi64>
  %1 = nn.gather %data, %0 {axis = 0 : i64} : tensor<4xi64>, tensor<4xi64> -> tensor<4xi64>
  %2 = nn.cast %b : tensor<4xi64> -> tensor<4xi8>
  %3 = nn.gather %data, %2 {axis = 0 : i64} : tensor<4xi64>, tensor<4xi8> -> tensor<4xi64>
  %4 = nn.reshape %c : tensor<2x4xi64> -> tensor<8xi64>
  %5 = nn.slice %4 {starts = array<i64: 2>, steps = array<i64: 1>} : tensor<8xi64> -> tensor<4xi64>
  %6 = nn.gather %data, %5 {axis = 0 : i64} : tensor<4xi64>, tensor<4xi64> -> tensor<4xi64>
  %7 = nn.slice %d {starts = array<i64: 3>, steps = array<i64: -2>} : tensor<4xi64> -> tensor<2xi64>
  %8 = nn.gather %data, %7 {axis = 0 : i64} : tensor<4xi64>, tensor<2xi64> -> tensor<2xi64>
  return %1, %3, %6, %8 : tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<2xi64>
}

// -----

// Two parts of an input that meet again are both looked up, by whichever way each comes.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: nn.lookups = [{begin = array<i64: 3>, end = array<i64: 4>, high = 7 : i64, low = -7 : i64, reader = "wte"}, {begin = array<i64: 0>, end = array<i64: 2>, high = 7 : i64, low = -7 : i64, reader = "wte"}]
func.func @main(%ids: tensor<4xi64>, %table: tensor<7x4xf32>) -> tensor<3x4xf32> {
  %0 = nn.slice %ids {starts = array<i64: 0>, steps = array<i64: 1>} : tensor<4xi64> -> tensor<2xi64>
  %1 = nn.slice %ids {starts = array<i64: 3>, steps = array<i64: 1>} : tensor<4xi64> -> tensor<1xi64>
  %2 = nn.concat %0, %1 {axis = 0 : i64} : tensor<2xi64>, tensor<1xi64> -> tensor<3xi64>
  %3 = nn.embedding %table, %2 {vocabulary = 7 : i64} : tensor<7x4xf32>, tensor<3xi64> -> tensor<3x4xf32> loc("wte")
  return %3 : tensor<3x4xf32>
}

// -----

// A state is no input: nobody gives it.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.lookups
// CHECK: return
func.func @main(%ids: tensor<4xi64> {nn.initial = 0.0 : f64, nn.state = "s"}, %table: tensor<3x2xf32>) -> tensor<4x2xf32> {
  %0 = nn.embedding %table, %ids {vocabulary = 3 : i64} : tensor<3x2xf32>, tensor<4xi64> -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// An index of a dim that is shared by nobody, as GatherElements has: the class of each row. A loss for which every label counts ignores none. Labels that count
// from the last class where they are negative are looked up by all that they may be.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: nn.lookups = [{begin = array<i64: 0>, end = array<i64: 4>, high = 7 : i64, low = -7 : i64, reader = "pick"}]
// CHECK-SAME: nn.lookups = [{begin = array<i64: 0>, end = array<i64: 4>, high = 7 : i64, low = 0 : i64, reader = "loss"}]
// CHECK-SAME: nn.lookups = [{begin = array<i64: 0>, end = array<i64: 4>, high = 7 : i64, low = -7 : i64, reader = "wrapped"}]
func.func @main(%classes: tensor<4xi64>, %labels: tensor<4xi64>, %any: tensor<4xi64>, %scores: tensor<4x7xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = nn.reshape %classes : tensor<4xi64> -> tensor<4x1xi64>
  %1 = nn.gather_nd %scores, %0 {batch_dims = 1 : i64} : tensor<4x7xf32>, tensor<4x1xi64> -> tensor<4xf32> loc("pick")
  %2, %3, %top = nn.cross_entropy %scores, %labels {ignore_index = -9223372036854775808 : i64} : tensor<4x7xf32>, tensor<4xi64> -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32> loc("loss")
  %zero = nn.constant dense<0> : tensor<i64> : tensor<i64>
  %seven = nn.constant dense<7> : tensor<i64> : tensor<i64>
  %negative = nn.compare lt %any, %zero : tensor<4xi64>, tensor<i64> -> tensor<4xi1>
  %raised = nn.add %any, %seven : tensor<4xi64>, tensor<i64> -> tensor<4xi64>
  %wrapped = nn.select %negative, %raised, %any : tensor<4xi1>, tensor<4xi64>, tensor<4xi64> -> tensor<4xi64>
  %4, %5, %top2 = nn.cross_entropy %scores, %wrapped {ignore_index = -9223372036854775808 : i64} : tensor<4x7xf32>, tensor<4xi64> -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32> loc("wrapped")
  return %1, %2, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
