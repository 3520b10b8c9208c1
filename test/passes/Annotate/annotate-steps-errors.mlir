// RUN: hpc-opt %s --split-input-file --hpc-annotate-steps="length=8 rows=2" -verify-diagnostics
// RUN: not hpc-opt %s --split-input-file --hpc-annotate-steps="length=8 rows=3" 2>&1 | FileCheck %s --check-prefix=ROWS

// ROWS: [usage] steps of 3 positions do not make up a sequence of 8; --max-length must be a multiple of --prefill-chunk

// No attention: nothing continues a sequence.
module {
  // expected-error @below {{[unsupported] --generate: no attention is in the model, so nothing of it continues a sequence from keys and values; export a decoder}}
  func.func @main(%x: tensor<4x8x6xf32>) -> tensor<4x8x6xf32> {
    return %x : tensor<4x8x6xf32>
  }
}

// -----

// A sum along positions would need a state of its own.
module {
  func.func @main(%x: tensor<4x2x8x6xf32>) -> tensor<4x2x8x6xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 144, hashes = [1]> : tensor<6x6xf32>
    %y = nn.matmul %x, %w : tensor<4x2x8x6xf32>, tensor<6x6xf32> -> tensor<4x2x8x6xf32>
    // expected-error @below {{[unsupported] --generate: nn.cumsum needs all positions of a sequence at once, and a step has the keys and values of attention alone of those before; generate with a model whose positions meet in causal attention alone}}
    %s = nn.cumsum %y {axis = 2 : i64} : tensor<4x2x8x6xf32> -> tensor<4x2x8x6xf32>
    %a = nn.attention %s, %y, %y {scale = 1.0 : f64, causal_offset = 0 : i64} : tensor<4x2x8x6xf32>, tensor<4x2x8x6xf32>, tensor<4x2x8x6xf32> -> tensor<4x2x8x6xf32>
    return %a : tensor<4x2x8x6xf32>
  }
}

// -----

// Scores in ops of their own, which no kernel bounds by the position.
module {
  func.func @main(%x: tensor<4x2x8x6xf32>) -> tensor<4x2x8x6xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 144, hashes = [1]> : tensor<6x6xf32>
    %q = nn.matmul %x, %w : tensor<4x2x8x6xf32>, tensor<6x6xf32> -> tensor<4x2x8x6xf32>
    // expected-error @below {{[unsupported] --generate: nn.matmul makes scores of an attention that is written out in other ops, and keys are kept for nn.attention alone}}
    %s = nn.matmul %q, %q {transpose_rhs} : tensor<4x2x8x6xf32>, tensor<4x2x8x6xf32> -> tensor<4x2x8x8xf32>
    %p = nn.softmax %s : tensor<4x2x8x8xf32> -> tensor<4x2x8x8xf32>
    %a = nn.matmul %p, %q : tensor<4x2x8x8xf32>, tensor<4x2x8x6xf32> -> tensor<4x2x8x6xf32>
    return %a : tensor<4x2x8x6xf32>
  }
}
