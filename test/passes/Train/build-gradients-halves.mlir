// RUN: hpc-opt %s --hpc-build-gradients -split-input-file | FileCheck %s

// Parameters of 16 bits are held as f32. Each is rounded before its first reader, not where it is declared, so its gradient is widened as soon as it is complete,
// before that of the layer below: gradients of 16 bits do not wait for the end of backward. One that two layers read is complete with
// the first of them. A product gives the wide type itself.
// CHECK-LABEL: func.func @main
// CHECK: %[[SHARED:.*]] = nn.parameter "shared" {{.*}}type = bf16> : tensor<3x3xf32>
// CHECK-NEXT: %[[OWN:.*]] = nn.parameter "own"
// CHECK-NEXT: nn.tanh
// CHECK-NEXT: nn.cast %[[OWN]]
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: %[[ROUNDED:.*]] = nn.cast %[[SHARED]]
// CHECK-NEXT: nn.matmul %{{.*}}, %[[ROUNDED]]
// CHECK-NEXT: nn.matmul %{{.*}}, %[[ROUNDED]]
// CHECK: %[[SUM:.*]] = nn.add {{.*}}bf16>
// CHECK-NEXT: %[[WIDE:.*]] = nn.cast %[[SUM]] : tensor<3x3xbf16> -> tensor<3x3xf32>
// CHECK-NEXT: %[[OTHER:.*]] = nn.matmul {{.*}}transpose_lhs} : {{.*}} -> tensor<3x3xf32>
// CHECK-NEXT: return %{{.*}}, %[[WIDE]], %[[OTHER]]
func.func @main(%x: tensor<4x3xbf16>) -> (tensor<f32> {nn.name = "loss"}) {
  %shared = nn.parameter "shared" stored <file = "w", bytes = 18, hashes = [0]> : tensor<3x3xbf16>
  %own = nn.parameter "own" stored <file = "w", bytes = 18, hashes = [0]> : tensor<3x3xbf16>
  %unread = nn.parameter "unread" stored <file = "w", bytes = 18, hashes = [0]> : tensor<3x3xbf16>
  %a = nn.tanh %x : tensor<4x3xbf16> -> tensor<4x3xbf16>
  %b = nn.matmul %a, %own : tensor<4x3xbf16>, tensor<3x3xbf16> -> tensor<4x3xbf16>
  %c = nn.matmul %b, %shared : tensor<4x3xbf16>, tensor<3x3xbf16> -> tensor<4x3xbf16>
  %d = nn.matmul %c, %shared : tensor<4x3xbf16>, tensor<3x3xbf16> -> tensor<4x3xbf16>
  %e = nn.cast %d : tensor<4x3xbf16> -> tensor<4x3xf32>
  %s = nn.reduce sum %e {axes = array<i64: 0, 1>} : tensor<4x3xf32> -> tensor<1x1xf32>
  %loss = nn.reshape %s : tensor<1x1xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Of a sum both terms have the gradient of the sum. The product that gives it keeps its type, since the other term's product reads it in 16 bits.
// CHECK-LABEL: func.func @main
// CHECK: %[[BOTH:.*]] = nn.matmul {{.*}}transpose_rhs} : {{.*}} -> tensor<4x4xbf16>
// CHECK: nn.cast %[[BOTH]] : tensor<4x4xbf16> -> tensor<4x4xf32>
// CHECK: nn.matmul %{{.*}}, %[[BOTH]] {transpose_lhs} : {{.*}} -> tensor<4x4xf32>
func.func @main(%x: tensor<4x4xbf16>) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 32, hashes = [0]> : tensor<4x4xbf16>
  %added = nn.parameter "added" stored <file = "w", bytes = 32, hashes = [0]> : tensor<4x4xbf16>
  %y = nn.matmul %x, %w : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
  %z = nn.add %y, %added : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
  %d = nn.matmul %z, %x : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
  %e = nn.cast %d : tensor<4x4xbf16> -> tensor<4x4xf32>
  %s = nn.reduce sum %e {axes = array<i64: 0, 1>} : tensor<4x4xf32> -> tensor<1x1xf32>
  %loss = nn.reshape %s : tensor<1x1xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
