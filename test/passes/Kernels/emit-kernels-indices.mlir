// RUN: hpc-opt %s --hpc-emit-kernels="cpu=x86-64-v3 print-kernels" -o %t 2>&1 | FileCheck %s

// A reshape that only takes heads apart and puts them together again divides nothing: rows and columns are addressed by
// sums, and the one element that both ways lead to is loaded once.
// CHECK-LABEL: func.func private @heads_0.rows
// CHECK-NOT: arith.divui
// CHECK-NOT: arith.remui
// CHECK: llvm.load
// CHECK-NOT: llvm.load
// CHECK: llvm.store
// CHECK-LABEL: func.func @heads_0
func.func @main(%x: tensor<6x40xf32>, %y: tensor<4x6xf32>) -> (tensor<6x40xf32>, tensor<2x3x4xf32>, tensor<3x9xf32>) {
  %0 = nn.fused "heads_0" (%x) : (tensor<6x40xf32>) -> tensor<6x40xf32> {
  ^bb0(%a: tensor<6x40xf32>):
    %1 = nn.reshape %a : tensor<6x40xf32> -> tensor<2x3x5x8xf32>
    %2 = nn.transpose %1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x3x5x8xf32> -> tensor<2x5x3x8xf32>
    %3 = nn.neg %2 : tensor<2x5x3x8xf32> -> tensor<2x5x3x8xf32>
    %4 = nn.transpose %3 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x3x8xf32> -> tensor<2x3x5x8xf32>
    %5 = nn.reshape %4 : tensor<2x3x5x8xf32> -> tensor<6x40xf32>
    %6 = nn.add %5, %a : tensor<6x40xf32>, tensor<6x40xf32> -> tensor<6x40xf32>
    nn.yield %6 : tensor<6x40xf32>
  }

  // A row number is divided once for all that ask for its digits.
  // CHECK-LABEL: func.func private @rows_0.rows
  // CHECK-COUNT-1: arith.divui
  // CHECK-NOT: arith.divui
  // CHECK-LABEL: func.func @rows_0
  %7 = nn.fused "rows_0" (%y) : (tensor<4x6xf32>) -> tensor<2x3x4xf32> {
  ^bb0(%a: tensor<4x6xf32>):
    %1 = nn.transpose %a {permutation = array<i64: 1, 0>} : tensor<4x6xf32> -> tensor<6x4xf32>
    %2 = nn.reshape %1 : tensor<6x4xf32> -> tensor<2x3x4xf32>
    %b = nn.constant dense<[[[1.0], [2.0], [3.0]]]> : tensor<1x3x1xf32> : tensor<1x3x1xf32>
    %c = nn.constant dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf32> : tensor<2x1x1xf32>
    %3 = nn.add %2, %b : tensor<2x3x4xf32>, tensor<1x3x1xf32> -> tensor<2x3x4xf32>
    %4 = nn.mul %3, %c : tensor<2x3x4xf32>, tensor<2x1x1xf32> -> tensor<2x3x4xf32>
    nn.yield %4 : tensor<2x3x4xf32>
  }

  // What lies outside on one side alone is clamped once, and what a slice takes off again not at all.
  // CHECK-LABEL: func.func private @pads_0.rows
  // CHECK-NOT: arith.maxsi
  // CHECK-LABEL: func.func @pads_0
  %8 = nn.fused "pads_0" (%x) : (tensor<6x40xf32>) -> tensor<3x9xf32> {
  ^bb0(%a: tensor<6x40xf32>):
    %1 = nn.pad %a {low = array<i64: 1, 4>, high = array<i64: 0, 0>, value = 0.0 : f32} : tensor<6x40xf32> -> tensor<7x44xf32>
    %2 = nn.slice %1 {starts = array<i64: 2, 4>, steps = array<i64: 1, 2>} : tensor<7x44xf32> -> tensor<3x9xf32>
    nn.yield %2 : tensor<3x9xf32>
  }
  return %0, %7, %8 : tensor<6x40xf32>, tensor<2x3x4xf32>, tensor<3x9xf32>
}
