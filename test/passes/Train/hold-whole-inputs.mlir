// RUN: hpc-opt %s --hpc-hold-whole-inputs=micro-batches=2 -split-input-file | FileCheck %s
// RUN: hpc-opt %s --hpc-hold-whole-inputs -split-input-file | FileCheck %s --check-prefix=ONE

// Every row is divided by how many there are: each micro-batch counts all of the labels, where it had its own part of them. The count that is a result stays what
// all micro-batches add up. If the copy read the part, each micro-batch would divide by its own count.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[ROWS:[a-z0-9]+]]: tensor<4x3xf32> {nn.name = "rows"}, %[[LABELS:[a-z0-9]+]]: tensor<4x3xi64> {nn.name = "labels"}, %[[ALL:[a-z0-9]+]]: tensor<4x3xi64> {nn.whole_of = "labels"})
// CHECK-DAG: %[[COUNT:.*]] = nn.reduce sum %[[MINE:.*]] {axes = array<i64: 0, 1>}
// CHECK-DAG: %[[MINE]] = nn.cast %[[LABELS]]
// CHECK: %[[WIDE:.*]] = nn.cast %[[ALL]]
// CHECK: %[[WHOLE:.*]] = nn.reduce sum %[[WIDE]] {axes = array<i64: 0, 1>}
// CHECK: %[[FIRST:.*]] = nn.div %[[ROWS]], %[[WHOLE]]
// CHECK-NOT: nn.cast
// CHECK: nn.mul %[[FIRST]], %[[WHOLE]]
// CHECK: return %{{.*}}, %[[COUNT]]
// ONE-LABEL: func.func @main
// ONE-NOT: nn.whole_of
// ONE: return
func.func @main(%rows: tensor<4x3xf32> {nn.name = "rows"}, %labels: tensor<4x3xi64> {nn.name = "labels"}) -> (tensor<4x3xf32>, tensor<1x1xf32>) {
  %wide = nn.cast %labels : tensor<4x3xi64> -> tensor<4x3xf32>
  %count = nn.reduce sum %wide {axes = array<i64: 0, 1>} : tensor<4x3xf32> -> tensor<1x1xf32>
  %part = nn.div %rows, %count : tensor<4x3xf32>, tensor<1x1xf32> -> tensor<4x3xf32>
  %again = nn.mul %part, %count : tensor<4x3xf32>, tensor<1x1xf32> -> tensor<4x3xf32>
  return %again, %count : tensor<4x3xf32>, tensor<1x1xf32>
}

// -----

// A mean along each row is a micro-batch's own, and that of a product would have every micro-batch compute the whole model: both stay.
// CHECK-LABEL: func.func @main
// CHECK-NOT: nn.whole_of
// CHECK: return
// ONE-LABEL: func.func @main
func.func @main(%x: tensor<4x2xf32> {nn.name = "x"}) -> (tensor<4x2xf32>, tensor<4x3xf32>) {
  %w = nn.parameter "w" stored <file = "w", bytes = 24, hashes = [0]> : tensor<2x3xf32>
  %own = nn.reduce sum %x {axes = array<i64: 1>} : tensor<4x2xf32> -> tensor<4x1xf32>
  %shifted = nn.sub %x, %own : tensor<4x2xf32>, tensor<4x1xf32> -> tensor<4x2xf32>
  %y = nn.matmul %x, %w : tensor<4x2xf32>, tensor<2x3xf32> -> tensor<4x3xf32>
  %sum = nn.reduce sum %y {axes = array<i64: 0>} : tensor<4x3xf32> -> tensor<1x3xf32>
  %centred = nn.sub %y, %sum : tensor<4x3xf32>, tensor<1x3xf32> -> tensor<4x3xf32>
  return %shifted, %centred : tensor<4x2xf32>, tensor<4x3xf32>
}

// -----

// An input without a batch is whole as it is.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<3xf32> {nn.dims = ["3"], nn.name = "scale"}, %[[ALL:[a-z0-9]+]]: tensor<4x3xf32> {nn.whole_of = "x"})
// CHECK: %[[SCALED:.*]] = nn.mul %[[ALL]], %[[SCALE]]
// CHECK: nn.reduce sum %[[SCALED]]
// ONE-LABEL: func.func @main
func.func @main(%x: tensor<4x3xf32> {nn.name = "x", nn.dims = ["batch", "3"]}, %scale: tensor<3xf32> {nn.name = "scale", nn.dims = ["3"]}) -> tensor<4x3xf32> {
  %scaled = nn.mul %x, %scale : tensor<4x3xf32>, tensor<3xf32> -> tensor<4x3xf32>
  %sum = nn.reduce sum %scaled {axes = array<i64: 0>} : tensor<4x3xf32> -> tensor<1x3xf32>
  %y = nn.sub %x, %sum : tensor<4x3xf32>, tensor<1x3xf32> -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}
