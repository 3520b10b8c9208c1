// RUN: hpc-opt %s '--hpc-quantize-weights=weights=int8 least=24' --split-input-file | FileCheck %s
// RUN: hpc-opt %s --hpc-quantize-weights --split-input-file | FileCheck %s --check-prefix=FLOAT --implicit-check-not=int8
// FLOAT-COUNT-5: nn.parameter

// A line is an output channel: of a weight as exporters store linear layers it runs along the other dim. Nothing else changes, so that no
// later phase need know.
// CHECK-LABEL: @linear
// CHECK: %[[W:.*]] = nn.parameter "w" stored <{{.*}}int8_along = 0> : tensor<8x6xf32>
// CHECK: %[[Y:.*]] = nn.matmul %arg0, %[[W]] : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
// CHECK: %[[V:.*]] = nn.parameter "v" stored <{{.*}}int8_along = 1> : tensor<5x6xf32>
// CHECK: nn.matmul %[[Y]], %[[V]] {transpose_rhs}
func.func @linear(%x: tensor<4x8xf32>) -> tensor<4x5xf32> {
  %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1]> : tensor<8x6xf32>
  %y = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %v = nn.parameter "v" stored <file = "f", bytes = 120, hashes = [1]> : tensor<5x6xf32>
  %z = nn.matmul %y, %v {transpose_rhs} : tensor<4x6xf32>, tensor<5x6xf32> -> tensor<4x5xf32>
  return %z : tensor<4x5xf32>
}

// -----

// The head is the table of a lookup, transposed: the product has lines along the table's columns, the lookup the stored numbers. Rounded too, the
// table would lose digits for no bytes that a step reads.
// CHECK-LABEL: @tied
// CHECK-DAG: %[[TABLE:.*]] = nn.parameter "wte" stored <file = "f", bytes = 192, hashes = [1]> : tensor<6x8xf32>
// CHECK-DAG: %[[HEAD:.*]] = nn.parameter "wte" stored <{{.*}}int8_along = 1> : tensor<6x8xf32>
// CHECK-DAG: nn.embedding %[[TABLE]]
// CHECK-DAG: %[[T:.*]] = nn.transpose %[[HEAD]]
// CHECK: nn.matmul {{.*}}, %[[T]]
// CHECK-NOT: nn.transpose
func.func @tied(%ids: tensor<4xi64>) -> tensor<4x6xf32> {
  %w = nn.parameter "wte" stored <file = "f", bytes = 192, hashes = [1]> : tensor<6x8xf32>
  %x = nn.embedding %w, %ids {vocabulary = 6 : i64} : tensor<6x8xf32>, tensor<4xi64> -> tensor<4x8xf32>
  %t = nn.transpose %w {permutation = array<i64: 1, 0>} : tensor<6x8xf32> -> tensor<8x6xf32>
  %y = nn.matmul %x, %t : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// Columns of one stored weight, for q and k: a line of what is stored is a line of either. Experts have lines of their own, each as long as its
// product's sum.
// CHECK-LABEL: @parts
// CHECK: %[[W:.*]] = nn.parameter "qk" stored <{{.*}}int8_along = 0> : tensor<8x6xf32>
// CHECK-NEXT: nn.slice %[[W]]
// CHECK: nn.parameter "experts" stored <{{.*}}int8_along = 1> : tensor<2x8x6xf32>
func.func @parts(%x: tensor<4x8xf32>, %e: tensor<2x4x8xf32>) -> (tensor<4x3xf32>, tensor<2x4x6xf32>) {
  %w = nn.parameter "qk" stored <file = "f", bytes = 192, hashes = [1]> : tensor<8x6xf32>
  %q = nn.slice %w {starts = array<i64: 0, 3>, steps = array<i64: 1, 1>} : tensor<8x6xf32> -> tensor<8x3xf32>
  %y = nn.matmul %x, %q : tensor<4x8xf32>, tensor<8x3xf32> -> tensor<4x3xf32>
  %s = nn.parameter "experts" stored <file = "f", bytes = 384, hashes = [1]> : tensor<2x8x6xf32>
  %z = nn.matmul %e, %s : tensor<2x4x8xf32>, tensor<2x8x6xf32> -> tensor<2x4x6xf32>
  return %y, %z : tensor<4x3xf32>, tensor<2x4x6xf32>
}

// -----

// What stays in float: too small a weight; one of which a sum takes two dims, whose lines are no lines of what is stored; biases; activations.
// CHECK-LABEL: @others
// CHECK-NOT: int8
func.func @others(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>) -> (tensor<4x6xf32>, tensor<4x4xf32>) {
  %two = nn.parameter "two" stored <file = "f", bytes = 192, hashes = [1]> : tensor<2x4x6xf32>
  %w = nn.reshape %two : tensor<2x4x6xf32> -> tensor<8x6xf32>
  %z = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %b = nn.parameter "b" stored <file = "f", bytes = 24, hashes = [1]> : tensor<6xf32>
  %sum = nn.add %z, %b : tensor<4x6xf32>, tensor<6xf32> -> tensor<4x6xf32>
  %small = nn.parameter "small" stored <file = "f", bytes = 32, hashes = [1]> : tensor<2x4xf32>
  %u = nn.matmul %y, %small : tensor<4x2xf32>, tensor<2x4xf32> -> tensor<4x4xf32>
  return %sum, %u : tensor<4x6xf32>, tensor<4x4xf32>
}
