// RUN: hpc-opt %s --hpc-narrow-products=dtype=bf16 --hpc-verify-precision=dtype=bf16 --split-input-file | FileCheck %s
// RUN: hpc-opt %s --hpc-narrow-products=dtype=fp16 --hpc-verify-precision=dtype=fp16 --split-input-file | FileCheck %s --check-prefix=HALF
// RUN: hpc-opt %s --hpc-narrow-products --hpc-verify-precision --split-input-file | FileCheck %s --check-prefix=MODEL

// Both operands are rounded, the sum is not: were the result bf16, every bias and residual after it would lose 16 bits.
// CHECK-LABEL: @linear
// CHECK: %[[A:.*]] = nn.cast %arg0 : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: %[[W:.*]] = nn.parameter "w"
// CHECK: %[[B:.*]] = nn.cast %[[W]] : tensor<8x6xf32> -> tensor<8x6xbf16>
// CHECK: %[[Y:.*]] = nn.matmul %[[A]], %[[B]] : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
// CHECK: nn.tanh %[[Y]] : tensor<4x6xf32>
// HALF-LABEL: @linear
// HALF: nn.matmul {{.*}} : tensor<4x8xf16>, tensor<8x6xf16> -> tensor<4x6xf32>
// MODEL-LABEL: @linear
// MODEL-NOT: nn.cast
// MODEL-LABEL: @shared
func.func @linear(%x: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1]> : tensor<8x6xf32>
  %y = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %z = nn.tanh %y : tensor<4x6xf32> -> tensor<4x6xf32>
  return %z : tensor<4x6xf32>
}

// -----

// A weight that two products read over views is rounded once, as it is stored; were the cast behind the transpose, it could not be
// bound, and every step would round the weight anew.
// CHECK-LABEL: @shared
// CHECK: %[[W:.*]] = nn.parameter "w"
// CHECK-NEXT: %[[N:.*]] = nn.cast %[[W]]
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[N]] {{.*}} : tensor<6x8xbf16> -> tensor<8x6xbf16>
// CHECK-NOT: nn.transpose
// CHECK-COUNT-2: nn.matmul {{.*}}, %[[T]]
// CHECK-NOT: nn.cast {{.*}}tensor<6x8xf32>
func.func @shared(%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1]> : tensor<6x8xf32>
  %t = nn.transpose %w {permutation = array<i64: 1, 0>} : tensor<6x8xf32> -> tensor<8x6xf32>
  %y = nn.matmul %x, %t : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %u = nn.matmul %z, %t : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  return %y, %u : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// A view that something else reads too stays in f32 beside its copy.
// CHECK-LABEL: @kept
// CHECK-DAG: %[[WIDE:.*]] = nn.reshape %arg0 : tensor<32xf32> -> tensor<4x8xf32>
// CHECK-DAG: nn.reshape {{.*}} : tensor<32xbf16> -> tensor<4x8xbf16>
// CHECK: nn.add %{{.*}}, %[[WIDE]] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
func.func @kept(%x: tensor<32xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %v = nn.reshape %x : tensor<32xf32> -> tensor<4x8xf32>
  %y = nn.matmul %v, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %z = nn.add %y, %v : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----

// Of attention q, k and v are multiplied, the bias is added: a mask of -3.4e38 is infinite in 16 bits. Its result is always complete on a
// rank and read by a product alone, so it is rounded where it is made; the product's own may be a sum over ranks, and is not.
// CHECK-LABEL: @attention
// CHECK: %[[R:.*]] = nn.attention {{.*}} bias %arg3 : tensor<1x1x3x3xf32> {{.*}} : tensor<1x2x3x4xbf16>, tensor<1x2x3x4xbf16>, tensor<1x2x3x4xbf16> -> tensor<1x2x3x4xbf16>
// CHECK: nn.transpose %[[R]]
// CHECK: %[[Y:.*]] = nn.matmul {{.*}} -> tensor<1x3x5xf32>
// CHECK: %[[N:.*]] = nn.cast %[[Y]] : tensor<1x3x5xf32> -> tensor<1x3x5xbf16>
func.func @attention(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>, %mask: tensor<1x1x3x3xf32>,
    %w: tensor<8x5xf32>, %u: tensor<5x5xf32>) -> tensor<1x3x5xf32> {
  %a = nn.attention %q, %k, %v bias %mask : tensor<1x1x3x3xf32> {scale = 0.5} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  %t = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x2x3x4xf32> -> tensor<1x3x2x4xf32>
  %r = nn.reshape %t : tensor<1x3x2x4xf32> -> tensor<1x3x8xf32>
  %y = nn.matmul %r, %w : tensor<1x3x8xf32>, tensor<8x5xf32> -> tensor<1x3x5xf32>
  %z = nn.matmul %y, %u : tensor<1x3x5xf32>, tensor<5x5xf32> -> tensor<1x3x5xf32>
  return %z : tensor<1x3x5xf32>
}

// -----

// What a model has in other types it has on purpose; what it widened to f32 is not rounded back, but read as it was.
// CHECK-LABEL: @own
// CHECK: nn.matmul %arg0, %arg0 {transpose_rhs} : tensor<4x8xf64>, tensor<4x8xf64> -> tensor<4x4xf64>
// CHECK: nn.matmul %arg1, %arg1 {transpose_rhs} : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x4xf32>
// HALF-LABEL: @own
// HALF: nn.matmul {{.*}} : tensor<4x8xf16>, tensor<4x8xf16> -> tensor<4x4xf32>
func.func @own(%x: tensor<4x8xf64>, %z: tensor<4x8xbf16>) -> (tensor<4x4xf64>, tensor<4x4xf32>) {
  %y = nn.matmul %x, %x {transpose_rhs} : tensor<4x8xf64>, tensor<4x8xf64> -> tensor<4x4xf64>
  %c = nn.cast %z : tensor<4x8xbf16> -> tensor<4x8xf32>
  %u = nn.matmul %c, %c {transpose_rhs} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
  return %y, %u : tensor<4x4xf64>, tensor<4x4xf32>
}
