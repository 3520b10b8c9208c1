// RUN: hpc-opt %s --hpc-annotate-tensor-parallel --split-input-file | FileCheck %s

// Attention with a fused projection: heads are cut, and the cut of q, k and v alike is (3, 5@tp, 8) of the weight. A cut 120@tp would hold q and half of k.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "c_attn" {{.*}}dist.seed = #dist.seed<"[40?, (3, 5@tp, 8)]">
// CHECK: nn.parameter "c_proj" {{.*}}dist.seed = #dist.seed<"[(5@tp, 8), 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %c_attn = nn.parameter "c_attn" stored <file = "w", bytes = 19200, hashes = [1]> : tensor<40x120xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 480, hashes = [1]> : tensor<120xf32>
    %c_proj = nn.parameter "c_proj" stored <file = "w", bytes = 6400, hashes = [1]> : tensor<40x40xf32>
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
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[72@tp, 40?]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[40?, 72@tp]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
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
// CHECK: nn.parameter "gate" {{.*}}dist.seed = #dist.seed<"[40?, 72@tp]">
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[40?, 72@tp]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[72@tp, 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %gate = nn.parameter "gate" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
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
// CHECK: nn.parameter "wte" {{.*}}dist.seed = #dist.seed<"[503@tp, 40?]">
// CHECK: nn.parameter "w"
// CHECK-NOT: dist.seed
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%ids: tensor<4x33xi64>) -> tensor<4x33x503xf32> {
    %wte = nn.parameter "wte" stored <file = "w", bytes = 80480, hashes = [1]> : tensor<503x40xf32>
    %w = nn.parameter "w" stored <file = "w", bytes = 160, hashes = [1]> : tensor<40xf32>
    %e = nn.embedding %wte, %ids {vocabulary = 503 : i64} : tensor<503x40xf32>, tensor<4x33xi64> -> tensor<4x33x40xf32>
    %n = nn.rms_norm %e weight %w : tensor<40xf32> {epsilon = 1.0e-5 : f64} : tensor<4x33x40xf32> -> tensor<4x33x40xf32>
    %y = nn.matmul %n, %wte {transpose_rhs} : tensor<4x33x40xf32>, tensor<503x40xf32> -> tensor<4x33x503xf32>
    return %y : tensor<4x33x503xf32>
  }
}

// -----

// An untied head leads to nothing but an output: by columns, and no collective.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "head" {{.*}}dist.seed = #dist.seed<"[40?, 101@tp]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x101xf32> {
    %head = nn.parameter "head" stored <file = "w", bytes = 16160, hashes = [1]> : tensor<40x101xf32>
    %y = nn.matmul %x, %head : tensor<4x33x40xf32>, tensor<40x101xf32> -> tensor<4x33x101xf32>
    return %y : tensor<4x33x101xf32>
  }
}

// -----

// A running sum over the dim in between needs whole rows: the two are no pair, and nothing is cut.
// CHECK-LABEL: func.func @main
// CHECK-NOT: dist.seed
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %m = nn.matmul %x, %up : tensor<4x33x40xf32>, tensor<40x72xf32> -> tensor<4x33x72xf32>
    %g = nn.cumsum %m {axis = 2 : i64} : tensor<4x33x72xf32> -> tensor<4x33x72xf32>
    %d = nn.matmul %g, %down : tensor<4x33x72xf32>, tensor<72x40xf32> -> tensor<4x33x40xf32>
    %n = nn.cumsum %d {axis = 2 : i64} : tensor<4x33x40xf32> -> tensor<4x33x40xf32>
    return %n : tensor<4x33x40xf32>
  }
}

// -----

// A softmax between them is cut with them: its largest number and its sum are all-reduced.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[40?, 72@tp]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[72@tp, 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
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
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=1:tensor">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %m = nn.matmul %x, %up : tensor<4x33x40xf32>, tensor<40x72xf32> -> tensor<4x33x72xf32>
    %g = nn.softmax %m : tensor<4x33x72xf32> -> tensor<4x33x72xf32>
    %d = nn.matmul %g, %down : tensor<4x33x72xf32>, tensor<72x40xf32> -> tensor<4x33x40xf32>
    %n = nn.softmax %d : tensor<4x33x40xf32> -> tensor<4x33x40xf32>
    return %n : tensor<4x33x40xf32>
  }
}

// -----

// Rows are cut where that pays: a vocabulary of 503 rows saves more than its all-reduce moves; two token types, and a
// table of positions that is read 33 * 33 times, save next to nothing, and stay whole.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "words" {{.*}}dist.seed = #dist.seed<"[503@tp, 40?]">
// CHECK: nn.parameter "types"
// CHECK-NOT: dist.seed
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%ids: tensor<1x33xi64>, %kinds: tensor<1x33xi64>, %distances: tensor<33x33xi64>) -> (tensor<1x33x40xf32>, tensor<33x33x5xf32>) {
    %words = nn.parameter "words" stored <file = "w", bytes = 80480, hashes = [1]> : tensor<503x40xf32>
    %types = nn.parameter "types" stored <file = "w", bytes = 320, hashes = [1]> : tensor<2x40xf32>
    %bias = nn.parameter "bias" stored <file = "w", bytes = 640, hashes = [1]> : tensor<32x5xf32>
    %w = nn.embedding %words, %ids {vocabulary = 503 : i64} : tensor<503x40xf32>, tensor<1x33xi64> -> tensor<1x33x40xf32>
    %t = nn.embedding %types, %kinds {vocabulary = 2 : i64} : tensor<2x40xf32>, tensor<1x33xi64> -> tensor<1x33x40xf32>
    %b = nn.embedding %bias, %distances {vocabulary = 32 : i64} : tensor<32x5xf32>, tensor<33x33xi64> -> tensor<33x33x5xf32>
    %e = nn.add %w, %t : tensor<1x33x40xf32>, tensor<1x33x40xf32> -> tensor<1x33x40xf32>
    return %e, %b : tensor<1x33x40xf32>, tensor<33x33x5xf32>
  }
}

// -----

// A layout is handed a list of axes: both of a split tensor axis cut the weights, and other roles never do.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[40?, 72@(row, col)]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[72@(row, col), 40?]">
module attributes {dist.mesh = #dist.mesh<"time=1:time, tp=2:data, row=2:tensor, col=3:tensor, sp=2:sequence">} {
  func.func @main(%x: tensor<4x33x40xf32>) -> tensor<4x33x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %m = nn.matmul %x, %up : tensor<4x33x40xf32>, tensor<40x72xf32> -> tensor<4x33x72xf32>
    %g = nn.gelu %m : tensor<4x33x72xf32> -> tensor<4x33x72xf32>
    %d = nn.matmul %g, %down : tensor<4x33x72xf32>, tensor<72x40xf32> -> tensor<4x33x40xf32>
    return %d : tensor<4x33x40xf32>
  }
}

// -----

// A dim of no elements between two products (a past of length 0) is no place to cut; dividing by it killed the compiler.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up"
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x0x40xf32>) -> tensor<4x0x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %m = nn.matmul %x, %up : tensor<4x0x40xf32>, tensor<40x72xf32> -> tensor<4x0x72xf32>
    %r = nn.reshape %m : tensor<4x0x72xf32> -> tensor<4x0x8x9xf32>
    %s = nn.reshape %r : tensor<4x0x8x9xf32> -> tensor<4x0x72xf32>
    %d = nn.matmul %s, %down : tensor<4x0x72xf32>, tensor<72x40xf32> -> tensor<4x0x40xf32>
    return %d : tensor<4x0x40xf32>
  }
}

// -----

// Forty doublings of the ways between two products, and after the last: each question is asked once, or this takes 2^40.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[40?, 72@tp]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[72@tp, 72?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x40xf32>) -> tensor<4x72xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 20736, hashes = [1]> : tensor<72x72xf32>
    %m = nn.matmul %x, %up : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %s0 = nn.sigmoid %m : tensor<4x72xf32> -> tensor<4x72xf32>
    %x0 = nn.mul %m, %s0 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s1 = nn.sigmoid %x0 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x1 = nn.mul %x0, %s1 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s2 = nn.sigmoid %x1 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x2 = nn.mul %x1, %s2 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s3 = nn.sigmoid %x2 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x3 = nn.mul %x2, %s3 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s4 = nn.sigmoid %x3 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x4 = nn.mul %x3, %s4 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s5 = nn.sigmoid %x4 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x5 = nn.mul %x4, %s5 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s6 = nn.sigmoid %x5 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x6 = nn.mul %x5, %s6 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s7 = nn.sigmoid %x6 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x7 = nn.mul %x6, %s7 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s8 = nn.sigmoid %x7 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x8 = nn.mul %x7, %s8 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s9 = nn.sigmoid %x8 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x9 = nn.mul %x8, %s9 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s10 = nn.sigmoid %x9 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x10 = nn.mul %x9, %s10 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s11 = nn.sigmoid %x10 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x11 = nn.mul %x10, %s11 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s12 = nn.sigmoid %x11 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x12 = nn.mul %x11, %s12 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s13 = nn.sigmoid %x12 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x13 = nn.mul %x12, %s13 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s14 = nn.sigmoid %x13 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x14 = nn.mul %x13, %s14 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s15 = nn.sigmoid %x14 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x15 = nn.mul %x14, %s15 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s16 = nn.sigmoid %x15 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x16 = nn.mul %x15, %s16 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s17 = nn.sigmoid %x16 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x17 = nn.mul %x16, %s17 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s18 = nn.sigmoid %x17 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x18 = nn.mul %x17, %s18 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s19 = nn.sigmoid %x18 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x19 = nn.mul %x18, %s19 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s20 = nn.sigmoid %x19 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x20 = nn.mul %x19, %s20 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s21 = nn.sigmoid %x20 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x21 = nn.mul %x20, %s21 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s22 = nn.sigmoid %x21 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x22 = nn.mul %x21, %s22 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s23 = nn.sigmoid %x22 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x23 = nn.mul %x22, %s23 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s24 = nn.sigmoid %x23 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x24 = nn.mul %x23, %s24 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s25 = nn.sigmoid %x24 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x25 = nn.mul %x24, %s25 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s26 = nn.sigmoid %x25 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x26 = nn.mul %x25, %s26 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s27 = nn.sigmoid %x26 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x27 = nn.mul %x26, %s27 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s28 = nn.sigmoid %x27 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x28 = nn.mul %x27, %s28 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s29 = nn.sigmoid %x28 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x29 = nn.mul %x28, %s29 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s30 = nn.sigmoid %x29 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x30 = nn.mul %x29, %s30 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s31 = nn.sigmoid %x30 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x31 = nn.mul %x30, %s31 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s32 = nn.sigmoid %x31 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x32 = nn.mul %x31, %s32 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s33 = nn.sigmoid %x32 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x33 = nn.mul %x32, %s33 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s34 = nn.sigmoid %x33 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x34 = nn.mul %x33, %s34 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s35 = nn.sigmoid %x34 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x35 = nn.mul %x34, %s35 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s36 = nn.sigmoid %x35 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x36 = nn.mul %x35, %s36 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s37 = nn.sigmoid %x36 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x37 = nn.mul %x36, %s37 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s38 = nn.sigmoid %x37 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x38 = nn.mul %x37, %s38 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %s39 = nn.sigmoid %x38 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x39 = nn.mul %x38, %s39 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %d = nn.matmul %x39, %down : tensor<4x72xf32>, tensor<72x72xf32> -> tensor<4x72xf32>
    %t0 = nn.sigmoid %d : tensor<4x72xf32> -> tensor<4x72xf32>
    %y0 = nn.mul %d, %t0 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t1 = nn.sigmoid %y0 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y1 = nn.mul %y0, %t1 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t2 = nn.sigmoid %y1 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y2 = nn.mul %y1, %t2 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t3 = nn.sigmoid %y2 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y3 = nn.mul %y2, %t3 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t4 = nn.sigmoid %y3 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y4 = nn.mul %y3, %t4 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t5 = nn.sigmoid %y4 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y5 = nn.mul %y4, %t5 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t6 = nn.sigmoid %y5 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y6 = nn.mul %y5, %t6 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t7 = nn.sigmoid %y6 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y7 = nn.mul %y6, %t7 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t8 = nn.sigmoid %y7 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y8 = nn.mul %y7, %t8 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t9 = nn.sigmoid %y8 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y9 = nn.mul %y8, %t9 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t10 = nn.sigmoid %y9 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y10 = nn.mul %y9, %t10 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t11 = nn.sigmoid %y10 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y11 = nn.mul %y10, %t11 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t12 = nn.sigmoid %y11 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y12 = nn.mul %y11, %t12 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t13 = nn.sigmoid %y12 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y13 = nn.mul %y12, %t13 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t14 = nn.sigmoid %y13 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y14 = nn.mul %y13, %t14 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t15 = nn.sigmoid %y14 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y15 = nn.mul %y14, %t15 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t16 = nn.sigmoid %y15 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y16 = nn.mul %y15, %t16 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t17 = nn.sigmoid %y16 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y17 = nn.mul %y16, %t17 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t18 = nn.sigmoid %y17 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y18 = nn.mul %y17, %t18 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t19 = nn.sigmoid %y18 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y19 = nn.mul %y18, %t19 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t20 = nn.sigmoid %y19 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y20 = nn.mul %y19, %t20 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t21 = nn.sigmoid %y20 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y21 = nn.mul %y20, %t21 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t22 = nn.sigmoid %y21 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y22 = nn.mul %y21, %t22 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t23 = nn.sigmoid %y22 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y23 = nn.mul %y22, %t23 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t24 = nn.sigmoid %y23 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y24 = nn.mul %y23, %t24 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t25 = nn.sigmoid %y24 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y25 = nn.mul %y24, %t25 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t26 = nn.sigmoid %y25 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y26 = nn.mul %y25, %t26 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t27 = nn.sigmoid %y26 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y27 = nn.mul %y26, %t27 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t28 = nn.sigmoid %y27 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y28 = nn.mul %y27, %t28 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t29 = nn.sigmoid %y28 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y29 = nn.mul %y28, %t29 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t30 = nn.sigmoid %y29 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y30 = nn.mul %y29, %t30 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t31 = nn.sigmoid %y30 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y31 = nn.mul %y30, %t31 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t32 = nn.sigmoid %y31 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y32 = nn.mul %y31, %t32 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t33 = nn.sigmoid %y32 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y33 = nn.mul %y32, %t33 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t34 = nn.sigmoid %y33 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y34 = nn.mul %y33, %t34 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t35 = nn.sigmoid %y34 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y35 = nn.mul %y34, %t35 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t36 = nn.sigmoid %y35 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y36 = nn.mul %y35, %t36 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t37 = nn.sigmoid %y36 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y37 = nn.mul %y36, %t37 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t38 = nn.sigmoid %y37 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y38 = nn.mul %y37, %t38 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    %t39 = nn.sigmoid %y38 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y39 = nn.mul %y38, %t39 : tensor<4x72xf32>, tensor<4x72xf32> -> tensor<4x72xf32>
    return %y39 : tensor<4x72xf32>
  }
}

// -----

// A past of length 0 beside the present holds nothing that would have to be cut: the layout is that without it.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[40?, 72@tp]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[72@tp, 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x3x40xf32>, %past: tensor<4x0x72xf32>) -> tensor<4x3x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %m = nn.matmul %x, %up : tensor<4x3x40xf32>, tensor<40x72xf32> -> tensor<4x3x72xf32>
    %c = nn.concat %past, %m {axis = 1 : i64} : tensor<4x0x72xf32>, tensor<4x3x72xf32> -> tensor<4x3x72xf32>
    %d = nn.matmul %c, %down : tensor<4x3x72xf32>, tensor<72x40xf32> -> tensor<4x3x40xf32>
    return %d : tensor<4x3x40xf32>
  }
}

// -----

// What the user keeps whole, or wants gathered, has no rows behind it: they would cost an all-reduce and save no gather. What the user cuts as the layout
// would is a pair like any other.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up" {{.*}}origin = "sidecar"
// CHECK: nn.parameter "down"
// CHECK-NOT: dist.seed
// CHECK: nn.parameter "gathered" {{.*}}origin = "sidecar"
// CHECK: nn.parameter "after"
// CHECK-NOT: dist.seed
// CHECK: nn.parameter "column" {{.*}}origin = "sidecar"
// CHECK: nn.parameter "row" {{.*}}dist.seed = #dist.seed<"[72@tp, 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x40xf32>) -> tensor<4x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> {dist.seed = #dist.seed<"[40, 72]", priority = 0, origin = "sidecar">} : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %gathered = nn.parameter "gathered" stored <file = "w", bytes = 11520, hashes = [1]> {dist.seed = #dist.seed<"[40, 72@tp]", priority = 0, origin = "sidecar">} : tensor<40x72xf32>
    %bias = nn.parameter "bias" stored <file = "w", bytes = 288, hashes = [1]> : tensor<72xf32>
    %after = nn.parameter "after" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %column = nn.parameter "column" stored <file = "w", bytes = 11520, hashes = [1]> {dist.seed = #dist.seed<"[40, 72@tp]", priority = 0, origin = "sidecar">} : tensor<40x72xf32>
    %row = nn.parameter "row" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %0 = nn.matmul %x, %up : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %1 = nn.matmul %0, %down : tensor<4x72xf32>, tensor<72x40xf32> -> tensor<4x40xf32>
    %2 = nn.layer_norm %1 {epsilon = 1.0e-5 : f64} : tensor<4x40xf32> -> tensor<4x40xf32>
    %3 = nn.matmul %2, %gathered : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %4 = nn.add %3, %bias {dist.whole_output = array<i64: 1>, dist.whole_output_for = "gathered"} : tensor<4x72xf32>, tensor<72xf32> -> tensor<4x72xf32>
    %5 = nn.matmul %4, %after : tensor<4x72xf32>, tensor<72x40xf32> -> tensor<4x40xf32>
    %6 = nn.layer_norm %5 {epsilon = 1.0e-5 : f64} : tensor<4x40xf32> -> tensor<4x40xf32>
    %7 = nn.matmul %6, %column : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %8 = nn.matmul %7, %row : tensor<4x72xf32>, tensor<72x40xf32> -> tensor<4x40xf32>
    %9 = nn.layer_norm %8 {epsilon = 1.0e-5 : f64} : tensor<4x40xf32> -> tensor<4x40xf32>
    return %9 : tensor<4x40xf32>
  }
}

// -----

// What the user keeps whole stays whole behind a reshape too (the kernel of a convolution): no seed, and no pair.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "kernel" {{.*}}origin = "sidecar"
// CHECK-NOT: dist.seed
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x40xf32>) -> tensor<4x40xf32> {
    %kernel = nn.parameter "kernel" stored <file = "w", bytes = 11520, hashes = [1]> {dist.seed = #dist.seed<"[8, 5, 72]", priority = 0, origin = "sidecar">} : tensor<8x5x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %w = nn.reshape %kernel : tensor<8x5x72xf32> -> tensor<40x72xf32>
    %0 = nn.matmul %x, %w : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %1 = nn.matmul %0, %down : tensor<4x72xf32>, tensor<72x40xf32> -> tensor<4x40xf32>
    %2 = nn.layer_norm %1 {epsilon = 1.0e-5 : f64} : tensor<4x40xf32> -> tensor<4x40xf32>
    return %2 : tensor<4x40xf32>
  }
}

// -----

// q and one k and v for all heads, parts of one stored weight. q's part cannot be cut as a slice is (32 of 48), so its product is; k and v have one head and
// stay whole.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "w"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<32x48xf32>
// CHECK: nn.parameter "o" {{.*}}dist.seed = #dist.seed<"[(4@tp, 8), 32?]">
// CHECK: nn.matmul {{.*}} {dist.seed = #dist.seed<"[2?, 6?, (4@tp, 8)]">} {{.*}} -> tensor<2x6x32xf32>
// CHECK-COUNT-2: nn.matmul {{%[^ ]*, %[^ ]*}} : {{.*}} -> tensor<2x6x8xf32>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<2x6x32xf32>) -> tensor<2x6x32xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 6144, hashes = [1]> : tensor<32x48xf32>
    %o = nn.parameter "o" stored <file = "w", offset = 6144, bytes = 4096, hashes = [1]> : tensor<32x32xf32>
    %wq = nn.slice %w {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<32x48xf32> -> tensor<32x32xf32>
    %wk = nn.slice %w {starts = array<i64: 0, 32>, steps = array<i64: 1, 1>} : tensor<32x48xf32> -> tensor<32x8xf32>
    %wv = nn.slice %w {starts = array<i64: 0, 40>, steps = array<i64: 1, 1>} : tensor<32x48xf32> -> tensor<32x8xf32>
    %q0 = nn.matmul %x, %wq : tensor<2x6x32xf32>, tensor<32x32xf32> -> tensor<2x6x32xf32>
    %q1 = nn.reshape %q0 : tensor<2x6x32xf32> -> tensor<2x6x4x8xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x4x8xf32> -> tensor<2x4x6x8xf32>
    %k0 = nn.matmul %x, %wk : tensor<2x6x32xf32>, tensor<32x8xf32> -> tensor<2x6x8xf32>
    %k = nn.reshape %k0 : tensor<2x6x8xf32> -> tensor<2x1x6x8xf32>
    %v0 = nn.matmul %x, %wv : tensor<2x6x32xf32>, tensor<32x8xf32> -> tensor<2x6x8xf32>
    %v = nn.reshape %v0 : tensor<2x6x8xf32> -> tensor<2x1x6x8xf32>
    %y = nn.attention %q, %k, %v {scale = 0.35 : f64, causal_offset = 0 : i64} : tensor<2x4x6x8xf32>, tensor<2x1x6x8xf32>, tensor<2x1x6x8xf32> -> tensor<2x4x6x8xf32>
    %t = nn.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x4x6x8xf32> -> tensor<2x6x4x8xf32>
    %r = nn.reshape %t : tensor<2x6x4x8xf32> -> tensor<2x6x32xf32>
    %z = nn.matmul %r, %o : tensor<2x6x32xf32>, tensor<32x32xf32> -> tensor<2x6x32xf32>
    return %z : tensor<2x6x32xf32>
  }
}

// -----

// Experts, stacked in one weight, that the router's weights mix: whole experts are dealt out, 5 of them over 2 ranks. Cut by columns and rows,
// the results of all experts would be summed before their biases. The router decides on every rank.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "router"
// CHECK-NOT: dist.seed
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[5@tp, 40?, 12?]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[5@tp, 12?, 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<9x40xf32>) -> tensor<1x9x40xf32> {
    %router = nn.parameter "router" stored <file = "w", bytes = 800, hashes = [1]> : tensor<40x5xf32>
    %up = nn.parameter "up" stored <file = "w", bytes = 9600, hashes = [1]> : tensor<5x40x12xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 800, hashes = [1]> : tensor<5x1x40xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 9600, hashes = [1]> : tensor<5x12x40xf32>
    %r = nn.matmul %x, %router : tensor<9x40xf32>, tensor<40x5xf32> -> tensor<9x5xf32>
    %s = nn.softmax %r : tensor<9x5xf32> -> tensor<9x5xf32>
    %t = nn.transpose %s {permutation = array<i64: 1, 0>} : tensor<9x5xf32> -> tensor<5x9xf32>
    %g = nn.reshape %t : tensor<5x9xf32> -> tensor<5x9x1xf32>
    %x1 = nn.reshape %x : tensor<9x40xf32> -> tensor<1x9x40xf32>
    %h = nn.matmul %x1, %up : tensor<1x9x40xf32>, tensor<5x40x12xf32> -> tensor<5x9x12xf32>
    %a = nn.relu %h : tensor<5x9x12xf32> -> tensor<5x9x12xf32>
    %d = nn.matmul %a, %down : tensor<5x9x12xf32>, tensor<5x12x40xf32> -> tensor<5x9x40xf32>
    %o = nn.add %d, %b : tensor<5x9x40xf32>, tensor<5x1x40xf32> -> tensor<5x9x40xf32>
    %m = nn.mul %o, %g : tensor<5x9x40xf32>, tensor<5x9x1xf32> -> tensor<5x9x40xf32>
    %y = nn.reduce sum %m {axes = array<i64: 0>} : tensor<5x9x40xf32> -> tensor<1x9x40xf32>
    return %y : tensor<1x9x40xf32>
  }
}

// -----

// Fewer experts than ranks: each expert is cut by columns and rows, or ranks would have none.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[2?, 40?, 12@tp]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[2?, 12@tp, 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=3:tensor">} {
  func.func @main(%x: tensor<9x40xf32>) -> tensor<1x9x40xf32> {
    %router = nn.parameter "router" stored <file = "w", bytes = 320, hashes = [1]> : tensor<40x2xf32>
    %up = nn.parameter "up" stored <file = "w", bytes = 3840, hashes = [1]> : tensor<2x40x12xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 320, hashes = [1]> : tensor<2x1x40xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 3840, hashes = [1]> : tensor<2x12x40xf32>
    %r = nn.matmul %x, %router : tensor<9x40xf32>, tensor<40x2xf32> -> tensor<9x2xf32>
    %s = nn.softmax %r : tensor<9x2xf32> -> tensor<9x2xf32>
    %t = nn.transpose %s {permutation = array<i64: 1, 0>} : tensor<9x2xf32> -> tensor<2x9xf32>
    %g = nn.reshape %t : tensor<2x9xf32> -> tensor<2x9x1xf32>
    %x1 = nn.reshape %x : tensor<9x40xf32> -> tensor<1x9x40xf32>
    %h = nn.matmul %x1, %up : tensor<1x9x40xf32>, tensor<2x40x12xf32> -> tensor<2x9x12xf32>
    %a = nn.relu %h : tensor<2x9x12xf32> -> tensor<2x9x12xf32>
    %d = nn.matmul %a, %down : tensor<2x9x12xf32>, tensor<2x12x40xf32> -> tensor<2x9x40xf32>
    %o = nn.add %d, %b : tensor<2x9x40xf32>, tensor<2x1x40xf32> -> tensor<2x9x40xf32>
    %m = nn.mul %o, %g : tensor<2x9x40xf32>, tensor<2x9x1xf32> -> tensor<2x9x40xf32>
    %y = nn.reduce sum %m {axes = array<i64: 0>} : tensor<2x9x40xf32> -> tensor<1x9x40xf32>
    return %y : tensor<1x9x40xf32>
  }
}

// -----

// What a running sum gives is whole on every rank, and a slice of it is free: `up` and `down` are a pair across it, `gate` stays whole.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[40?, 72@tp]">
// CHECK: nn.parameter "gate"
// CHECK-NOT: dist.seed
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[72@tp, 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<9x40xf32>) -> tensor<9x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %gate = nn.parameter "gate" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %u = nn.matmul %x, %up : tensor<9x40xf32>, tensor<40x72xf32> -> tensor<9x72xf32>
    %v = nn.matmul %x, %gate : tensor<9x40xf32>, tensor<40x72xf32> -> tensor<9x72xf32>
    %s = nn.cumsum %v {axis = 1 : i64} : tensor<9x72xf32> -> tensor<9x72xf32>
    %m = nn.mul %u, %s : tensor<9x72xf32>, tensor<9x72xf32> -> tensor<9x72xf32>
    %y = nn.matmul %m, %down : tensor<9x72xf32>, tensor<72x40xf32> -> tensor<9x40xf32>
    return %y : tensor<9x40xf32>
  }
}

// -----

// Not so where it reads the very columns that it scales: cut, they would be gathered for it. What is left is a head.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up"
// CHECK-NOT: dist.seed
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[72?, 40@tp]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<9x40xf32>) -> tensor<9x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %u = nn.matmul %x, %up : tensor<9x40xf32>, tensor<40x72xf32> -> tensor<9x72xf32>
    %s = nn.cumsum %u {axis = 1 : i64} : tensor<9x72xf32> -> tensor<9x72xf32>
    %m = nn.mul %u, %s : tensor<9x72xf32>, tensor<9x72xf32> -> tensor<9x72xf32>
    %y = nn.matmul %m, %down : tensor<9x72xf32>, tensor<72x40xf32> -> tensor<9x40xf32>
    return %y : tensor<9x40xf32>
  }
}

// -----

// Groups of channels are a stack too: dealt out to the columns, summed by the rows of the convolution behind them, also where a rank finds the
// group's input whole.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "group" {{.*}}dist.seed = #dist.seed<"[3@tp, 4?, 27?]">
// CHECK: nn.parameter "mix" {{.*}}dist.seed = #dist.seed<"[10?, (3@tp, 4)]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x3x27x36xf32>) -> tensor<4x10x36xf32> {
    %group = nn.parameter "group" stored <file = "w", bytes = 1296, hashes = [1]> : tensor<3x4x27xf32>
    %mix = nn.parameter "mix" stored <file = "w", bytes = 480, hashes = [1]> : tensor<10x12xf32>
    %g = nn.matmul %group, %x : tensor<3x4x27xf32>, tensor<4x3x27x36xf32> -> tensor<4x3x4x36xf32>
    %r = nn.reshape %g : tensor<4x3x4x36xf32> -> tensor<4x12x36xf32>
    %a = nn.relu %r : tensor<4x12x36xf32> -> tensor<4x12x36xf32>
    %y = nn.matmul %mix, %a : tensor<10x12xf32>, tensor<4x12x36xf32> -> tensor<4x10x36xf32>
    return %y : tensor<4x10x36xf32>
  }
}

// -----

// A residual stream without norms, as convolutional networks have it. Cut, every product that reads it would be summed, and the shortcut once more; so the
// stem, by columns at first, is whole, and so is the stream where others read it. The shortcut's sum joins the block's.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "stem"
// CHECK-NOT: dist.seed
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[16?, 24@tp]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[24@tp, 16?]">
// CHECK: nn.parameter "up2" {{.*}}dist.seed = #dist.seed<"[16?, 24@tp]">
// CHECK: nn.parameter "down2" {{.*}}dist.seed = #dist.seed<"[24@tp, 20?]">
// CHECK: nn.parameter "shortcut" {{.*}}dist.seed = #dist.seed<"[16@tp, 20?]">
// CHECK: nn.matmul
// CHECK: nn.relu {{.*}}dist.seed = #dist.seed<"[4?, 9?, 16]">
// CHECK: nn.relu
// CHECK: nn.relu {{.*}}dist.seed = #dist.seed<"[4?, 9?, 16]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x8xf32>) -> tensor<4x9x20xf32> {
    %stem = nn.parameter "stem" stored <file = "w", bytes = 512, hashes = [1]> : tensor<8x16xf32>
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<24x16xf32>
    %bias = nn.parameter "bias" stored <file = "w", bytes = 64, hashes = [1]> : tensor<16xf32>
    %up2 = nn.parameter "up2" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down2 = nn.parameter "down2" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %bias2 = nn.parameter "bias2" stored <file = "w", bytes = 80, hashes = [1]> : tensor<20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %s = nn.matmul %x, %stem : tensor<4x9x8xf32>, tensor<8x16xf32> -> tensor<4x9x16xf32>
    %x0 = nn.relu %s : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x16xf32> -> tensor<4x9x16xf32>
    %d1 = nn.add %d, %bias : tensor<4x9x16xf32>, tensor<16xf32> -> tensor<4x9x16xf32>
    %a = nn.add %d1, %x0 : tensor<4x9x16xf32>, tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %x1 = nn.relu %a : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u2 = nn.matmul %x1, %up2 : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r2 = nn.relu %u2 : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d2 = nn.matmul %r2, %down2 : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %d3 = nn.add %d2, %bias2 : tensor<4x9x20xf32>, tensor<20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x1, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %b = nn.add %d3, %c : tensor<4x9x20xf32>, tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %y = nn.softmax %b : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    return %y : tensor<4x9x20xf32>
  }
}

// -----

// 8 heads in 2 groups over 4 ranks: cut by groups, two ranks would have nothing to do. The heads of each group are cut, and every rank computes the
// keys and values of both groups.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "q" {{.*}}dist.seed = #dist.seed<"[16?, (2, 4@tp, 4)]">
// CHECK: nn.parameter "k"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<16x8xf32>
// CHECK: nn.parameter "v"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<16x8xf32>
// CHECK: nn.parameter "o" {{.*}}dist.seed = #dist.seed<"[(2, 4@tp, 4), 16?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=4:tensor">} {
  func.func @main(%x: tensor<2x6x16xf32>) -> tensor<2x6x16xf32> {
    %wq = nn.parameter "q" stored <file = "w", bytes = 2048, hashes = [1]> : tensor<16x32xf32>
    %wk = nn.parameter "k" stored <file = "w", bytes = 512, hashes = [1]> : tensor<16x8xf32>
    %wv = nn.parameter "v" stored <file = "w", bytes = 512, hashes = [1]> : tensor<16x8xf32>
    %wo = nn.parameter "o" stored <file = "w", bytes = 2048, hashes = [1]> : tensor<32x16xf32>
    %q0 = nn.matmul %x, %wq : tensor<2x6x16xf32>, tensor<16x32xf32> -> tensor<2x6x32xf32>
    %q1 = nn.reshape %q0 : tensor<2x6x32xf32> -> tensor<2x6x8x4xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x8x4xf32> -> tensor<2x8x6x4xf32>
    %k0 = nn.matmul %x, %wk : tensor<2x6x16xf32>, tensor<16x8xf32> -> tensor<2x6x8xf32>
    %k1 = nn.reshape %k0 : tensor<2x6x8xf32> -> tensor<2x6x2x4xf32>
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x2x4xf32> -> tensor<2x2x6x4xf32>
    %v0 = nn.matmul %x, %wv : tensor<2x6x16xf32>, tensor<16x8xf32> -> tensor<2x6x8xf32>
    %v1 = nn.reshape %v0 : tensor<2x6x8xf32> -> tensor<2x6x2x4xf32>
    %v = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x2x4xf32> -> tensor<2x2x6x4xf32>
    %y = nn.attention %q, %k, %v {scale = 0.35 : f64, causal_offset = 0 : i64} : tensor<2x8x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x8x6x4xf32>
    %t = nn.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x8x6x4xf32> -> tensor<2x6x8x4xf32>
    %r = nn.reshape %t : tensor<2x6x8x4xf32> -> tensor<2x6x32xf32>
    %z = nn.matmul %r, %wo : tensor<2x6x32xf32>, tensor<32x16xf32> -> tensor<2x6x16xf32>
    return %z : tensor<2x6x16xf32>
  }
}

// -----

// Keys that every sample has are one matrix many times, no stack of matrices to deal out where samples are summed up: dim 0 is the batch's.
// CHECK-LABEL: func.func @main
// CHECK: nn.broadcast {{.*}} -> tensor<4x3x16xf32>
// CHECK-NOT: 4@tp
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x6x3xf32>) -> tensor<1x6x12xf32> {
    %mu = nn.parameter "mu" stored <file = "w", bytes = 192, hashes = [1]> : tensor<3x16xf32>
    %w = nn.parameter "w" stored <file = "w", bytes = 768, hashes = [1]> : tensor<16x12xf32>
    %all = nn.broadcast %mu : tensor<3x16xf32> -> tensor<4x3x16xf32>
    %keys = nn.matmul %all, %w : tensor<4x3x16xf32>, tensor<16x12xf32> -> tensor<4x3x12xf32>
    %r = nn.relu %x : tensor<4x6x3xf32> -> tensor<4x6x3xf32>
    %y = nn.matmul %r, %keys : tensor<4x6x3xf32>, tensor<4x3x12xf32> -> tensor<4x6x12xf32>
    %s = nn.reduce sum %y {axes = array<i64: 0>} : tensor<4x6x12xf32> -> tensor<1x6x12xf32>
    return %s : tensor<1x6x12xf32>
  }
}

// -----

// A norm over all heads of the queries: its row is cut, since the heads are, and the product before it with it.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "q" {{.*}}dist.seed = #dist.seed<"[16?, (8@tp, 4)]">
// CHECK: nn.parameter "v" {{.*}}dist.seed = #dist.seed<"[16?, (8@tp, 4)]">
// CHECK: nn.parameter "o" {{.*}}dist.seed = #dist.seed<"[(8@tp, 4), 16?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<2x6x16xf32>, %k: tensor<2x8x6x4xf32>) -> tensor<2x6x16xf32> {
    %wq = nn.parameter "q" stored <file = "w", bytes = 2048, hashes = [1]> : tensor<16x32xf32>
    %wv = nn.parameter "v" stored <file = "w", bytes = 2048, hashes = [1]> : tensor<16x32xf32>
    %wo = nn.parameter "o" stored <file = "w", bytes = 2048, hashes = [1]> : tensor<32x16xf32>
    %q0 = nn.matmul %x, %wq : tensor<2x6x16xf32>, tensor<16x32xf32> -> tensor<2x6x32xf32>
    %qn = nn.rms_norm %q0 {epsilon = 1.0e-6 : f64} : tensor<2x6x32xf32> -> tensor<2x6x32xf32>
    %q1 = nn.reshape %qn : tensor<2x6x32xf32> -> tensor<2x6x8x4xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x8x4xf32> -> tensor<2x8x6x4xf32>
    %v0 = nn.matmul %x, %wv : tensor<2x6x16xf32>, tensor<16x32xf32> -> tensor<2x6x32xf32>
    %v1 = nn.reshape %v0 : tensor<2x6x32xf32> -> tensor<2x6x8x4xf32>
    %v = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x8x4xf32> -> tensor<2x8x6x4xf32>
    %y = nn.attention %q, %k, %v {scale = 0.35 : f64, causal_offset = 0 : i64} : tensor<2x8x6x4xf32>, tensor<2x8x6x4xf32>, tensor<2x8x6x4xf32> -> tensor<2x8x6x4xf32>
    %t = nn.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x8x6x4xf32> -> tensor<2x6x8x4xf32>
    %r = nn.reshape %t : tensor<2x6x8x4xf32> -> tensor<2x6x32xf32>
    %z = nn.matmul %r, %wo : tensor<2x6x32xf32>, tensor<32x16xf32> -> tensor<2x6x16xf32>
    return %z : tensor<2x6x16xf32>
  }
}

// -----

// The same with a second reader of the queries, a product that needs their rows whole: they would have to be gathered for it.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "q"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<16x32xf32>
// CHECK: nn.parameter "v" {{.*}}dist.seed = #dist.seed<"[16?, (8@tp, 4)]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<2x6x16xf32>, %k: tensor<2x8x6x4xf32>, %m: tensor<2x32x3xf32>) -> (tensor<2x6x16xf32>, tensor<2x6x3xf32>) {
    %wq = nn.parameter "q" stored <file = "w", bytes = 2048, hashes = [1]> : tensor<16x32xf32>
    %wv = nn.parameter "v" stored <file = "w", bytes = 2048, hashes = [1]> : tensor<16x32xf32>
    %wo = nn.parameter "o" stored <file = "w", bytes = 2048, hashes = [1]> : tensor<32x16xf32>
    %q0 = nn.matmul %x, %wq : tensor<2x6x16xf32>, tensor<16x32xf32> -> tensor<2x6x32xf32>
    %qn = nn.rms_norm %q0 {epsilon = 1.0e-6 : f64} : tensor<2x6x32xf32> -> tensor<2x6x32xf32>
    %n = nn.matmul %qn, %m : tensor<2x6x32xf32>, tensor<2x32x3xf32> -> tensor<2x6x3xf32>
    %q1 = nn.reshape %qn : tensor<2x6x32xf32> -> tensor<2x6x8x4xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x8x4xf32> -> tensor<2x8x6x4xf32>
    %v0 = nn.matmul %x, %wv : tensor<2x6x16xf32>, tensor<16x32xf32> -> tensor<2x6x32xf32>
    %v1 = nn.reshape %v0 : tensor<2x6x32xf32> -> tensor<2x6x8x4xf32>
    %v = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x6x8x4xf32> -> tensor<2x8x6x4xf32>
    %y = nn.attention %q, %k, %v {scale = 0.35 : f64, causal_offset = 0 : i64} : tensor<2x8x6x4xf32>, tensor<2x8x6x4xf32>, tensor<2x8x6x4xf32> -> tensor<2x8x6x4xf32>
    %t = nn.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x8x6x4xf32> -> tensor<2x6x8x4xf32>
    %r = nn.reshape %t : tensor<2x6x8x4xf32> -> tensor<2x6x32xf32>
    %z = nn.matmul %r, %wo : tensor<2x6x32xf32>, tensor<32x16xf32> -> tensor<2x6x16xf32>
    return %z, %n : tensor<2x6x16xf32>, tensor<2x6x3xf32>
  }
}

// -----

// Products with norms between them are paired: the first two; the third reads a sum, which is whole. A stack that is read both through a norm and by another
// product (a residual stream) stays whole.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "a" {{.*}}dist.seed = #dist.seed<"[16?, 24@tp]">
// CHECK: nn.parameter "b" {{.*}}dist.seed = #dist.seed<"[24@tp, 24?]">
// CHECK: nn.parameter "c"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<24x24xf32>
// CHECK: nn.parameter "d"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<24x24xf32>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<6x16xf32>) -> tensor<6x24xf32> {
    %wa = nn.parameter "a" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %wb = nn.parameter "b" stored <file = "w", bytes = 2304, hashes = [1]> : tensor<24x24xf32>
    %wc = nn.parameter "c" stored <file = "w", bytes = 2304, hashes = [1]> : tensor<24x24xf32>
    %wd = nn.parameter "d" stored <file = "w", bytes = 2304, hashes = [1]> : tensor<24x24xf32>
    %a = nn.matmul %x, %wa : tensor<6x16xf32>, tensor<16x24xf32> -> tensor<6x24xf32>
    %an = nn.layer_norm %a {epsilon = 1.0e-6 : f64} : tensor<6x24xf32> -> tensor<6x24xf32>
    %b = nn.matmul %an, %wb : tensor<6x24xf32>, tensor<24x24xf32> -> tensor<6x24xf32>
    %bn = nn.layer_norm %b {epsilon = 1.0e-6 : f64} : tensor<6x24xf32> -> tensor<6x24xf32>
    %c = nn.matmul %bn, %wc : tensor<6x24xf32>, tensor<24x24xf32> -> tensor<6x24xf32>
    %cn = nn.softmax %c : tensor<6x24xf32> -> tensor<6x24xf32>
    %d = nn.matmul %cn, %wd : tensor<6x24xf32>, tensor<24x24xf32> -> tensor<6x24xf32>
    %dn = nn.layer_norm %d {epsilon = 1.0e-6 : f64} : tensor<6x24xf32> -> tensor<6x24xf32>
    %s = nn.add %dn, %cn : tensor<6x24xf32>, tensor<6x24xf32> -> tensor<6x24xf32>
    %e = nn.matmul %s, %s {transpose_rhs} : tensor<6x24xf32>, tensor<6x24xf32> -> tensor<6x6xf32>
    %o = nn.matmul %e, %s : tensor<6x6xf32>, tensor<6x24xf32> -> tensor<6x24xf32>
    return %o : tensor<6x24xf32>
  }
}
