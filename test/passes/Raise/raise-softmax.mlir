// RUN: hpc-opt %s --hpc-raise-softmax --split-input-file | FileCheck %s

// Division and product with the reciprocal are both softmax.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3xf32>
// CHECK-NEXT: %[[P:.*]] = nn.softmax %[[X]]
// CHECK-NEXT: %[[Q:.*]] = nn.softmax %[[X]]
// CHECK-NEXT: return %[[P]], %[[Q]]
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %top = nn.reduce max %x {axes = array<i64: 1>} : tensor<2x3xf32> -> tensor<2x1xf32>
  %low = nn.sub %x, %top : tensor<2x3xf32>, tensor<2x1xf32> -> tensor<2x3xf32>
  %e = nn.exp %low : tensor<2x3xf32> -> tensor<2x3xf32>
  %sum = nn.reduce sum %e {axes = array<i64: 1>} : tensor<2x3xf32> -> tensor<2x1xf32>
  %p = nn.div %e, %sum : tensor<2x3xf32>, tensor<2x1xf32> -> tensor<2x3xf32>
  %r = nn.reciprocal %sum : tensor<2x1xf32> -> tensor<2x1xf32>
  %q = nn.mul %r, %e : tensor<2x1xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return %p, %q : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Over another dim than the last, or over two different ones, it is not nn.softmax.
// CHECK-LABEL: func.func @main
// CHECK-NOT: nn.softmax
// CHECK: return
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %top = nn.reduce max %x {axes = array<i64: 0>} : tensor<2x3xf32> -> tensor<1x3xf32>
  %low = nn.sub %x, %top : tensor<2x3xf32>, tensor<1x3xf32> -> tensor<2x3xf32>
  %e = nn.exp %low : tensor<2x3xf32> -> tensor<2x3xf32>
  %sum = nn.reduce sum %e {axes = array<i64: 0>} : tensor<2x3xf32> -> tensor<1x3xf32>
  %p = nn.div %e, %sum : tensor<2x3xf32>, tensor<1x3xf32> -> tensor<2x3xf32>
  %sum1 = nn.reduce sum %e {axes = array<i64: 1>} : tensor<2x3xf32> -> tensor<2x1xf32>
  %q = nn.div %e, %sum1 : tensor<2x3xf32>, tensor<2x1xf32> -> tensor<2x3xf32>
  return %p, %q : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Of 16 bits too: the op's own steps are in f32.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3xf16>
// CHECK-NEXT: %[[P:.*]] = nn.softmax %[[X]]
// CHECK-NEXT: return %[[P]]
func.func @main(%x: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %top = nn.reduce max %x {axes = array<i64: 1>} : tensor<2x3xf16> -> tensor<2x1xf16>
  %low = nn.sub %x, %top : tensor<2x3xf16>, tensor<2x1xf16> -> tensor<2x3xf16>
  %e = nn.exp %low : tensor<2x3xf16> -> tensor<2x3xf16>
  %sum = nn.reduce sum %e {axes = array<i64: 1>} : tensor<2x3xf16> -> tensor<2x1xf16>
  %p = nn.div %e, %sum : tensor<2x3xf16>, tensor<2x1xf16> -> tensor<2x3xf16>
  return %p : tensor<2x3xf16>
}
