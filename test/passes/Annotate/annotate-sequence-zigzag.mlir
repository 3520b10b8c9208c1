// RUN: hpc-opt %s --hpc-annotate-sequence="balance=zigzag" --split-input-file | FileCheck %s
// RUN: hpc-opt %s --hpc-annotate-sequence="balance=zigzag" --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=NOTE
// NOTE: remark: --cp-balance=zigzag: no attention is causal, so all positions have equal work and stay in plain order
// NOTE-NOT: remark
// RUN: hpc-opt %s --hpc-annotate-sequence="balance=zigzag mode=ulysses" --split-input-file | FileCheck %s --check-prefix=PLAIN
// PLAIN-NOT: nn.gather

// Rows enter in zigzag as ids and rows of a table, and leave it before the head. Attention gets the position of each query, and whole keys and values in their
// order. An edge without its gather is a row that meets another's ids, position or keys; one too many would be a gather of logits.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[Z:.*]] = nn.constant dense<[0, 1, 6, 7, 2, 3, 4, 5]>
// CHECK-DAG: %[[P:.*]] = nn.constant dense<[0, 1, 4, 5, 6, 7, 2, 3]>
// CHECK: %[[IDS:.*]] = nn.gather %arg0, %[[Z]] {axis = 1 : i64, dist.seed = #dist.seed<"[2?, 8@cp]">}
// CHECK: nn.embedding %{{.*}}, %[[IDS]]
// CHECK: %[[TABLE:.*]] = nn.gather %{{.*}}, %[[Z]] {axis = 0 : i64} : tensor<8x6xf32>
// CHECK: nn.add %{{.*}}, %[[TABLE]] {dist.seed = #dist.seed<"[2?, 8@cp, 6?]">}
// CHECK: nn.dropout %{{.*}} offsets %[[Z]] : tensor<8xi64> {{.*}}offset_dims = array<i64: 1>
// CHECK: %[[KEYS:.*]] = nn.gather %{{.*}}, %[[P]] {axis = 2 : i64, dist.seed = #dist.seed<"[2?, 2?, 8, 3?]">}
// CHECK: nn.attention %{{.*}}, %[[KEYS]], %[[KEYS]] query_positions %[[Z]] : tensor<8xi64>
// CHECK: %[[LAST:.*]] = nn.gather %{{.*}}, %[[P]] {axis = 1 : i64, dist.seed = #dist.seed<"[2?, 8@cp, 6?]">}
// CHECK: %[[LOGITS:.*]] = nn.matmul %[[LAST]], %{{.*}} : tensor<2x8x6xf32>, tensor<6x9xf32> -> tensor<2x8x9xf32>
// CHECK: return %[[LOGITS]]
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, cp=2:sequence, tp=1:tensor">} {
  func.func @main(%ids: tensor<2x8xi64>, %step: tensor<f64> {nn.step_scalar = "step"}, %seed: tensor<f64> {nn.step_scalar = "seed"}) -> tensor<2x8x9xf32> {
    %words = nn.parameter "words" stored <file = "w", bytes = 216, hashes = [1]> : tensor<9x6xf32>
    %places = nn.parameter "places" stored <file = "w", bytes = 240, hashes = [1]> : tensor<10x6xf32>
    %head = nn.parameter "head" stored <file = "w", bytes = 216, hashes = [1]> : tensor<6x9xf32>
    %e = nn.embedding %words, %ids {vocabulary = 9 : i64} : tensor<9x6xf32>, tensor<2x8xi64> -> tensor<2x8x6xf32>
    %t = nn.slice %places {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<10x6xf32> -> tensor<8x6xf32>
    %a = nn.add %e, %t : tensor<2x8x6xf32>, tensor<8x6xf32> -> tensor<2x8x6xf32>
    %x = nn.dropout %a, %step, %seed {site = 0 : i64, rate = 1.0e-1 : f64} : tensor<2x8x6xf32>, tensor<f64>, tensor<f64> -> tensor<2x8x6xf32>
    %h = nn.reshape %x : tensor<2x8x6xf32> -> tensor<2x8x2x3xf32>
    %q = nn.transpose %h {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x8x2x3xf32> -> tensor<2x2x8x3xf32>
    %y = nn.attention %q, %q, %q {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<2x2x8x3xf32>, tensor<2x2x8x3xf32>, tensor<2x2x8x3xf32> -> tensor<2x2x8x3xf32>
    %m = nn.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x2x8x3xf32> -> tensor<2x8x2x3xf32>
    %o = nn.reshape %m : tensor<2x8x2x3xf32> -> tensor<2x8x6xf32>
    %r = nn.add %x, %o : tensor<2x8x6xf32>, tensor<2x8x6xf32> -> tensor<2x8x6xf32>
    %l = nn.matmul %r, %head : tensor<2x8x6xf32>, tensor<6x9xf32> -> tensor<2x8x9xf32>
    return %l : tensor<2x8x9xf32>
  }
}

// -----

// Where all queries see all keys no order is more even than another.
// CHECK-LABEL: func.func @main
// CHECK-NOT: nn.gather
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, cp=2:sequence, tp=1:tensor">} {
  func.func @main(%q: tensor<2x2x8x3xf32>) -> tensor<2x2x8x3xf32> {
    %y = nn.attention %q, %q, %q {scale = 0.5 : f64} : tensor<2x2x8x3xf32>, tensor<2x2x8x3xf32>, tensor<2x2x8x3xf32> -> tensor<2x2x8x3xf32>
    return %y : tensor<2x2x8x3xf32>
  }
}

// -----

// Gradients of keys and values are terms on each rank: they become rows in zigzag while they are whole, and pieces after that. Rows of a batch of sequences stay in
// zigzag where a product sums over them.
// CHECK-LABEL: func.func @main
// CHECK: %[[Z:.*]] = nn.constant dense<[0, 1, 6, 7, 2, 3, 4, 5]>
// CHECK: nn.attention_grad {{.*}} query_positions %[[Z]]
// CHECK: %[[OF:.*]] = nn.gather %{{.*}}, %[[Z]] {axis = 1 : i64, dist.seed = #dist.seed<"[2?, 8, 1?, 3?]">}
// CHECK: %[[ROWS:.*]] = nn.reshape %[[OF]]
// CHECK-NOT: nn.gather
// CHECK: nn.matmul %[[ROWS]], %{{.*}} {transpose_lhs}
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, cp=2:sequence, tp=1:tensor">} {
  func.func @main(%q: tensor<2x1x8x3xf32>, %g: tensor<2x1x8x3xf32>) -> tensor<3x3xf32> {
    %d:3 = nn.attention_grad %q, %q, %q, %g {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<2x1x8x3xf32>, tensor<2x1x8x3xf32>, tensor<2x1x8x3xf32>, tensor<2x1x8x3xf32>
        -> tensor<2x1x8x3xf32>, tensor<2x1x8x3xf32>, tensor<2x1x8x3xf32>
    %k = nn.reshape %d#1 : tensor<2x1x8x3xf32> -> tensor<16x3xf32>
    %r = nn.reshape %d#0 : tensor<2x1x8x3xf32> -> tensor<16x3xf32>
    %w = nn.matmul %k, %r {transpose_lhs} : tensor<16x3xf32>, tensor<16x3xf32> -> tensor<3x3xf32>
    return %w : tensor<3x3xf32>
  }
}
