// RUN: hpc-opt %s --hpc-tie-weights --split-input-file | FileCheck %s

// Equal bytes are one weight: if not, a tied embedding is stored, sharded and trained twice. Its names stay findable.
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = nn.parameter "wte" {aliases = ["transformer.wte", "head"]
// CHECK-NOT: nn.parameter
// CHECK: nn.embedding %[[W]]
// CHECK: nn.matmul {{.*}}, %[[W]] {transpose_rhs}
func.func @main(%ids: tensor<2xi64>, %x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x3xf32>) {
  %a = nn.parameter "wte" {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>, aliases = ["transformer.wte"]} : tensor<3x2xf32>
  %b = nn.parameter "head" {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
  %e = nn.embedding %a, %ids {vocabulary = 3 : i64} : tensor<3x2xf32>, tensor<2xi64> -> tensor<2x2xf32>
  %y = nn.matmul %x, %b {transpose_rhs} : tensor<2x2xf32>, tensor<3x2xf32> -> tensor<2x3xf32>
  return %e, %y : tensor<2x2xf32>, tensor<2x3xf32>
}

// -----

// A transposed duplicate becomes a transpose of the table, even where the duplicate comes first: an embedding reads whole rows.
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = nn.parameter "wte" {aliases = ["onnx::MatMul_7"]
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[W]] {permutation = array<i64: 1, 0>}
// CHECK-NOT: nn.parameter
// CHECK: nn.embedding %[[W]]
// CHECK: nn.matmul {{.*}}, %[[T]]
func.func @main(%ids: tensor<2xi64>, %x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x3xf32>) {
  %b = nn.parameter "onnx::MatMul_7" {value = dense<[[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]> : tensor<2x3xf32>} : tensor<2x3xf32>
  %a = nn.parameter "wte" {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
  %e = nn.embedding %a, %ids {vocabulary = 3 : i64} : tensor<3x2xf32>, tensor<2xi64> -> tensor<2x2xf32>
  %y = nn.matmul %x, %b : tensor<2x2xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return %e, %y : tensor<2x2xf32>, tensor<2x3xf32>
}

// -----

// Not tied: other numbers, other types, and constant fills, which fresh biases share by accident.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-6: nn.parameter
func.func @main() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf64>, tensor<2x2xf32>) {
  %a = nn.parameter "zeros" {value = dense<0.0> : tensor<2xf32>} : tensor<2xf32>
  %b = nn.parameter "more zeros" {value = dense<0.0> : tensor<2xf32>} : tensor<2xf32>
  %c = nn.parameter "one two" {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %d = nn.parameter "two one" {value = dense<[2.0, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %e = nn.parameter "wide" {value = dense<[1.0, 2.0]> : tensor<2xf64>} : tensor<2xf64>
  %f = nn.parameter "square" {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  return %a, %b, %c, %d, %e, %f : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf64>, tensor<2x2xf32>
}

// -----

// Of weights that are not there only the place is known: two names of one place are one weight, and equal shapes say nothing. The files are not opened.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "a" stored <file = "none.bin", offset = 8, bytes = 8> {aliases = ["c"], state_names = ["a", "c"]}
// CHECK-NEXT: nn.parameter "b"
// CHECK-NEXT: nn.parameter "d"
// CHECK-NOT: nn.parameter
func.func @main() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = nn.parameter "a" stored <file = "none.bin", offset = 8, bytes = 8> : tensor<2xf32>
  %b = nn.parameter "b" stored <file = "none.bin", offset = 16, bytes = 8> : tensor<2xf32>
  %c = nn.parameter "c" stored <file = "none.bin", offset = 8, bytes = 8> : tensor<2xf32>
  %d = nn.parameter "d" stored <file = "other.bin", offset = 8, bytes = 8> : tensor<2xf32>
  return %a, %b, %c, %d : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// Two parameters of the model that begin alike, as the file says, stay two, or they would train as one; a copy of one of them is that one.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = nn.parameter "layers.0.a" {aliases = ["copy"]
// CHECK: %[[B:.*]] = nn.parameter "layers.1.a"
// CHECK-NOT: nn.parameter
// CHECK: return %[[A]], %[[B]], %[[A]]
func.func @main() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = nn.parameter "layers.0.a" {apart_as = ["layers.0.a"], value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %b = nn.parameter "layers.1.a" {apart_as = ["layers.1.a"], value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %c = nn.parameter "copy" {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  return %a, %b, %c : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
