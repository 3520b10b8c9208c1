// RUN: hpc-opt %s --hpc-annotate-tensor-parallel --split-input-file | FileCheck %s

// Each case differs in one condition from weights that are cut in another way; this condition alone decides.

// The user keeps `down` whole, so `up` has no rows to pair with.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up"
// CHECK-NOT: @tp
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x40xf32>) -> tensor<4x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> {dist.seed = #dist.seed<"[72, 40]", priority = 0, origin = "sidecar">} : tensor<72x40xf32>
    %0 = nn.matmul %x, %up : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %1 = nn.relu %0 : tensor<4x72xf32> -> tensor<4x72xf32>
    %2 = nn.matmul %1, %down : tensor<4x72xf32>, tensor<72x40xf32> -> tensor<4x40xf32>
    %3 = nn.softmax %2 : tensor<4x40xf32> -> tensor<4x40xf32>
    return %3 : tensor<4x40xf32>
  }
}

// -----

// The user keeps the shortcut whole, so it joins no sum, and its input may be cut.
// CHECK-LABEL: func.func @main
// CHECK: nn.relu %arg0 : tensor<4x9x16xf32>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x16xf32>) -> tensor<4x9x20xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> {dist.seed = #dist.seed<"[16, 20]", priority = 0, origin = "sidecar">} : tensor<16x20xf32>
    %x0 = nn.relu %x : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x0, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %s = nn.add %d, %c : tensor<4x9x20xf32>, tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %y = nn.softmax %s : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    return %y : tensor<4x9x20xf32>
  }
}

// -----

// The user keeps one stack of the experts whole, so experts are not dealt out.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up"
// CHECK-NOT: 5@tp
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<1x9x40xf32>) -> tensor<1x9x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 9600, hashes = [1]> : tensor<5x40x12xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 9600, hashes = [1]> {dist.seed = #dist.seed<"[5, 12, 40]", priority = 0, origin = "sidecar">} : tensor<5x12x40xf32>
    %h = nn.matmul %x, %up : tensor<1x9x40xf32>, tensor<5x40x12xf32> -> tensor<5x9x12xf32>
    %a = nn.relu %h : tensor<5x9x12xf32> -> tensor<5x9x12xf32>
    %d = nn.matmul %a, %down : tensor<5x9x12xf32>, tensor<5x12x40xf32> -> tensor<5x9x40xf32>
    %y = nn.reduce sum %d {axes = array<i64: 0>} : tensor<5x9x40xf32> -> tensor<1x9x40xf32>
    return %y : tensor<1x9x40xf32>
  }
}

// -----

// Columns of one matrix that a reduction sums up are not dealt out: only stacks of matrices are.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "w"
// CHECK-NOT: @tp
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x40xf32>) -> tensor<4x1xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %0 = nn.matmul %x, %w : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %1 = nn.reduce sum %0 {axes = array<i64: 1>} : tensor<4x72xf32> -> tensor<4x1xf32>
    return %1 : tensor<4x1xf32>
  }
}

// -----

// A running sum along the columns cannot be cut, so this matmul is no head.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "w"
// CHECK-NOT: @tp
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x40xf32>) -> tensor<4x72xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %0 = nn.matmul %x, %w : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %1 = nn.cumsum %0 {axis = 1 : i64} : tensor<4x72xf32> -> tensor<4x72xf32>
    return %1 : tensor<4x72xf32>
  }
}

// -----

// A table of 50 rows is smaller than the all-reduce of 33 rows, which moves them twice: whole.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "words"
// CHECK-NOT: @tp
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%ids: tensor<1x33xi64>) -> tensor<1x33x40xf32> {
    %words = nn.parameter "words" stored <file = "w", bytes = 8000, hashes = [1]> : tensor<50x40xf32>
    %w = nn.embedding %words, %ids {vocabulary = 50 : i64} : tensor<50x40xf32>, tensor<1x33xi64> -> tensor<1x33x40xf32>
    return %w : tensor<1x33x40xf32>
  }
}

// -----

// Each micro-batch has half of 66 rows: a table of 70 rows is larger than their all-reduce: cut.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "words" {{.*}}dist.seed = #dist.seed<"[70@tp, 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%ids: tensor<2x33xi64>) -> tensor<2x33x40xf32> {
    %words = nn.parameter "words" stored <file = "w", bytes = 11200, hashes = [1]> : tensor<70x40xf32>
    %w = nn.embedding %words, %ids {vocabulary = 70 : i64} : tensor<70x40xf32>, tensor<2x33xi64> -> tensor<2x33x40xf32>
    return %w : tensor<2x33x40xf32>
  }
}

// -----

// Each of two data-parallel ranks has half of them, too.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "words" {{.*}}dist.seed = #dist.seed<"[70@tp, 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=2:tensor">} {
  func.func @main(%ids: tensor<2x33xi64>) -> tensor<2x33x40xf32> {
    %words = nn.parameter "words" stored <file = "w", bytes = 11200, hashes = [1]> : tensor<70x40xf32>
    %w = nn.embedding %words, %ids {vocabulary = 70 : i64} : tensor<70x40xf32>, tensor<2x33xi64> -> tensor<2x33x40xf32>
    return %w : tensor<2x33x40xf32>
  }
}

// -----

// The user wants a value after a reshape whole. It is not the matmul's result or its bias, so the weight is cut.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[40?, 72@tp]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x40xf32>) -> tensor<4x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %0 = nn.matmul %x, %up : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %1 = nn.reshape %0 : tensor<4x72xf32> -> tensor<4x1x72xf32>
    %2 = nn.relu %1 {dist.whole_output = array<i64: 2>, dist.whole_output_for = "r"} : tensor<4x1x72xf32> -> tensor<4x1x72xf32>
    %3 = nn.reshape %2 : tensor<4x1x72xf32> -> tensor<4x72xf32>
    %4 = nn.matmul %3, %down : tensor<4x72xf32>, tensor<72x40xf32> -> tensor<4x40xf32>
    %5 = nn.softmax %4 : tensor<4x40xf32> -> tensor<4x40xf32>
    return %5 : tensor<4x40xf32>
  }
}

// -----

// The user's seed on the shortcut's input stays.
// CHECK-LABEL: func.func @main
// CHECK: nn.relu %arg0 {dist.seed = #dist.seed<"[4?, 9?, 16?]", priority = 0, origin = "sidecar">}
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x16xf32>) -> tensor<4x9x20xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %x0 = nn.relu %x {dist.seed = #dist.seed<"[4?, 9?, 16?]", priority = 0, origin = "sidecar">} : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x0, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %s = nn.add %d, %c : tensor<4x9x20xf32>, tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %y = nn.softmax %s : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    return %y : tensor<4x9x20xf32>
  }
}

// -----

// The user wants the result of a matmul by rows whole; after its all-reduce it is.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[72@tp, 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x40xf32>) -> tensor<4x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %0 = nn.matmul %x, %up : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %1 = nn.relu %0 : tensor<4x72xf32> -> tensor<4x72xf32>
    %2 = nn.matmul %1, %down {dist.whole_output = array<i64: 1>, dist.whole_output_for = "down"} : tensor<4x72xf32>, tensor<72x40xf32> -> tensor<4x40xf32>
    %3 = nn.softmax %2 : tensor<4x40xf32> -> tensor<4x40xf32>
    return %3 : tensor<4x40xf32>
  }
}
