// RUN: hpc-opt %s --hpc-annotate-tensor-parallel --split-input-file | FileCheck %s

// Attention with a fused projection: heads are cut, and the cut of q, k and v alike is (3, 5@tp, 8) of the weight. A cut 120@tp would hold q and half of k.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "c_attn" {{.*}}dist.seed = #dist.sharding<"[40, (3, 5@tp, 8)]">
// CHECK: nn.parameter "c_proj" {{.*}}dist.seed = #dist.sharding<"[(5@tp, 8), 40]">
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=1, tp=2">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %c_attn = nn.parameter "c_attn" {file = "w", offset = 0 : i64, bytes = 19200 : i64, hashes = array<i64: 1>} : tensor<40x120xf32>
    %b = nn.parameter "b" {file = "w", offset = 0 : i64, bytes = 480 : i64, hashes = array<i64: 1>} : tensor<120xf32>
    %c_proj = nn.parameter "c_proj" {file = "w", offset = 0 : i64, bytes = 6400 : i64, hashes = array<i64: 1>} : tensor<40x40xf32>
    %m = nn.matmul %x, %c_attn : tensor<4x33x40xf32>, tensor<40x120xf32> -> tensor<4x33x120xf32>
    %a = nn.add %m, %b : tensor<4x33x120xf32>, tensor<120xf32> -> tensor<4x33x120xf32>
    %q0 = nn.slice %a {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<4x33x120xf32> -> tensor<4x33x40xf32>
    %q1 = nn.reshape %q0 : tensor<4x33x40xf32> -> tensor<4x33x5x8xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x33x5x8xf32> -> tensor<4x5x33x8xf32>
    %k0 = nn.slice %a {starts = array<i64: 0, 0, 40>, steps = array<i64: 1, 1, 1>} : tensor<4x33x120xf32> -> tensor<4x33x40xf32>
    %k1 = nn.reshape %k0 : tensor<4x33x40xf32> -> tensor<4x33x5x8xf32>
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x33x5x8xf32> -> tensor<4x5x33x8xf32>
    %v0 = nn.slice %a {starts = array<i64: 0, 0, 80>, steps = array<i64: 1, 1, 1>} : tensor<4x33x120xf32> -> tensor<4x33x40xf32>
    %v1 = nn.reshape %v0 : tensor<4x33x40xf32> -> tensor<4x33x5x8xf32>
    %v = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x33x5x8xf32> -> tensor<4x5x33x8xf32>
    %y = nn.attention %q, %k, %v {scale = 0.35 : f64, causal_offset = 0 : i64} : tensor<4x5x33x8xf32>, tensor<4x5x33x8xf32>, tensor<4x5x33x8xf32> -> tensor<4x5x33x8xf32>
    %t = nn.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x5x33x8xf32> -> tensor<4x33x5x8xf32>
    %r = nn.reshape %t : tensor<4x33x5x8xf32> -> tensor<4x33x40xf32>
    %p = nn.matmul %r, %c_proj : tensor<4x33x40xf32>, tensor<40x40xf32> -> tensor<4x33x40xf32>
    %z = nn.add %p, %x : tensor<4x33x40xf32>, tensor<4x33x40xf32> -> tensor<4x33x40xf32>
    return %z : tensor<4x33x40xf32>
  }
}

// -----

// Feed-forward, weights stored transposed: the first by columns, the second by rows, each on its stored dim. The norm after it sees whole rows.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up" {{.*}}dist.priority = 1 : i64, dist.seed = #dist.sharding<"[72@tp, 40]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.sharding<"[40, 72@tp]">
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=1, tp=2">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %up = nn.parameter "up" {file = "w", offset = 0 : i64, bytes = 11520 : i64, hashes = array<i64: 1>} : tensor<72x40xf32>
    %down = nn.parameter "down" {file = "w", offset = 0 : i64, bytes = 11520 : i64, hashes = array<i64: 1>} : tensor<40x72xf32>
    %m = nn.matmul %x, %up {transpose_rhs} : tensor<4x33x40xf32>, tensor<72x40xf32> -> tensor<4x33x72xf32>
    %g = nn.gelu %m : tensor<4x33x72xf32> -> tensor<4x33x72xf32>
    %d = nn.matmul %g, %down {transpose_rhs} : tensor<4x33x72xf32>, tensor<40x72xf32> -> tensor<4x33x40xf32>
    %z = nn.add %d, %x : tensor<4x33x40xf32>, tensor<4x33x40xf32> -> tensor<4x33x40xf32>
    return %z : tensor<4x33x40xf32>
  }
}

// -----

// Two matmuls that meet in a product are both columns of the third.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "gate" {{.*}}dist.seed = #dist.sharding<"[40, 72@tp]">
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.sharding<"[40, 72@tp]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.sharding<"[72@tp, 40]">
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=1, tp=2">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %gate = nn.parameter "gate" {file = "w", offset = 0 : i64, bytes = 11520 : i64, hashes = array<i64: 1>} : tensor<40x72xf32>
    %up = nn.parameter "up" {file = "w", offset = 0 : i64, bytes = 11520 : i64, hashes = array<i64: 1>} : tensor<40x72xf32>
    %down = nn.parameter "down" {file = "w", offset = 0 : i64, bytes = 11520 : i64, hashes = array<i64: 1>} : tensor<72x40xf32>
    %a = nn.matmul %x, %gate : tensor<4x33x40xf32>, tensor<40x72xf32> -> tensor<4x33x72xf32>
    %b = nn.matmul %x, %up : tensor<4x33x40xf32>, tensor<40x72xf32> -> tensor<4x33x72xf32>
    %s = nn.sigmoid %a : tensor<4x33x72xf32> -> tensor<4x33x72xf32>
    %m = nn.mul %s, %b : tensor<4x33x72xf32>, tensor<4x33x72xf32> -> tensor<4x33x72xf32>
    %d = nn.matmul %m, %down : tensor<4x33x72xf32>, tensor<72x40xf32> -> tensor<4x33x40xf32>
    return %d : tensor<4x33x40xf32>
  }
}

// -----

// A tied embedding is cut by vocabulary once, for both uses; 503 is odd. The norm's weight stays whole.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "wte" {{.*}}dist.seed = #dist.sharding<"[503@tp, 40]">
// CHECK: nn.parameter "w"
// CHECK-NOT: dist.seed
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=1, tp=2">} {
  func.func @main(%ids: tensor<4x33xi64>) -> tensor<4x33x503xf32> {
    %wte = nn.parameter "wte" {file = "w", offset = 0 : i64, bytes = 80480 : i64, hashes = array<i64: 1>} : tensor<503x40xf32>
    %w = nn.parameter "w" {file = "w", offset = 0 : i64, bytes = 160 : i64, hashes = array<i64: 1>} : tensor<40xf32>
    %e = nn.embedding %wte, %ids {vocabulary = 503 : i64} : tensor<503x40xf32>, tensor<4x33xi64> -> tensor<4x33x40xf32>
    %n = nn.rms_norm %e weight %w : tensor<40xf32> {epsilon = 1.0e-5 : f64} : tensor<4x33x40xf32> -> tensor<4x33x40xf32>
    %y = nn.matmul %n, %wte {transpose_rhs} : tensor<4x33x40xf32>, tensor<503x40xf32> -> tensor<4x33x503xf32>
    return %y : tensor<4x33x503xf32>
  }
}

// -----

// An untied head leads to nothing but an output: by columns, and no collective.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "head" {{.*}}dist.seed = #dist.sharding<"[40, 101@tp]">
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=1, tp=2">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x101xf32> {
    %head = nn.parameter "head" {file = "w", offset = 0 : i64, bytes = 16160 : i64, hashes = array<i64: 1>} : tensor<40x101xf32>
    %y = nn.matmul %x, %head : tensor<4x33x40xf32>, tensor<40x101xf32> -> tensor<4x33x101xf32>
    return %y : tensor<4x33x101xf32>
  }
}

// -----

// A softmax over the dim in between needs whole rows: the two are no pair, and nothing is cut.
// CHECK-LABEL: func.func @main
// CHECK-NOT: dist.seed
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=1, tp=2">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %up = nn.parameter "up" {file = "w", offset = 0 : i64, bytes = 11520 : i64, hashes = array<i64: 1>} : tensor<40x72xf32>
    %down = nn.parameter "down" {file = "w", offset = 0 : i64, bytes = 11520 : i64, hashes = array<i64: 1>} : tensor<72x40xf32>
    %m = nn.matmul %x, %up : tensor<4x33x40xf32>, tensor<40x72xf32> -> tensor<4x33x72xf32>
    %g = nn.softmax %m : tensor<4x33x72xf32> -> tensor<4x33x72xf32>
    %d = nn.matmul %g, %down : tensor<4x33x72xf32>, tensor<72x40xf32> -> tensor<4x33x40xf32>
    %n = nn.softmax %d : tensor<4x33x40xf32> -> tensor<4x33x40xf32>
    return %n : tensor<4x33x40xf32>
  }
}

// -----

// Without tensor parallelism there is nothing to seed.
// CHECK-LABEL: func.func @main
// CHECK-NOT: dist.seed
module attributes {dist.mesh = #dist.mesh<"mb=1, dp=1, tp=1">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %up = nn.parameter "up" {file = "w", offset = 0 : i64, bytes = 11520 : i64, hashes = array<i64: 1>} : tensor<40x72xf32>
    %down = nn.parameter "down" {file = "w", offset = 0 : i64, bytes = 11520 : i64, hashes = array<i64: 1>} : tensor<72x40xf32>
    %m = nn.matmul %x, %up : tensor<4x33x40xf32>, tensor<40x72xf32> -> tensor<4x33x72xf32>
    %g = nn.softmax %m : tensor<4x33x72xf32> -> tensor<4x33x72xf32>
    %d = nn.matmul %g, %down : tensor<4x33x72xf32>, tensor<72x40xf32> -> tensor<4x33x40xf32>
    %n = nn.softmax %d : tensor<4x33x40xf32> -> tensor<4x33x40xf32>
    return %n : tensor<4x33x40xf32>
  }
}
