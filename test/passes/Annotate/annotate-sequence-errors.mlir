// RUN: hpc-opt %s --split-input-file --hpc-annotate-sequence="mode=ulysses balance=plain" -verify-diagnostics

// No attention: no dim is known to be positions.
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, cp=2:sequence, tp=1:tensor">} {
  // expected-error @below {{[unsupported] --cp=2: no attention is in the model, so it has no positions to share; use --dp or --tp}}
  func.func @main(%x: tensor<4x8x6xf32>) -> tensor<4x8x6xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 144, hashes = [1]> : tensor<6x6xf32>
    %y = nn.matmul %x, %w : tensor<4x8x6xf32>, tensor<6x6xf32> -> tensor<4x8x6xf32>
    return %y : tensor<4x8x6xf32>
  }
}

// -----

// A sum along positions of activations needs all of them; one of a mask, which counts positions, and earlier keys in front of keys do not matter.
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, cp=2:sequence, tp=1:tensor">} {
  func.func @main(%x: tensor<4x2x8x6xf32>, %ids: tensor<4x2x8x6xi64>, %past: tensor<4x2x3x6xf32>) -> (tensor<4x2x8x6xf32>, tensor<4x2x8x6xf32>) {
    %w = nn.parameter "w" stored <file = "w", bytes = 144, hashes = [1]> : tensor<6x6xf32>
    %counts = nn.cumsum %ids {axis = 2 : i64} : tensor<4x2x8x6xi64> -> tensor<4x2x8x6xi64>
    %real = nn.cast %counts : tensor<4x2x8x6xi64> -> tensor<4x2x8x6xf32>
    %y = nn.matmul %x, %w : tensor<4x2x8x6xf32>, tensor<6x6xf32> -> tensor<4x2x8x6xf32>
    %q = nn.add %y, %real : tensor<4x2x8x6xf32>, tensor<4x2x8x6xf32> -> tensor<4x2x8x6xf32>
    %k = nn.concat %past, %y {axis = 2 : i64} : tensor<4x2x3x6xf32>, tensor<4x2x8x6xf32> -> tensor<4x2x11x6xf32>
    %a = nn.attention %q, %k, %k {scale = 1.0 : f64} : tensor<4x2x8x6xf32>, tensor<4x2x11x6xf32>, tensor<4x2x11x6xf32> -> tensor<4x2x8x6xf32>
    // expected-error @below {{[unsupported] --cp=2: nn.cumsum needs all positions of a sequence at once, and ranks that share a sequence meet in attention alone; use --dp or --tp}}
    %s = nn.cumsum %a {axis = 2 : i64} : tensor<4x2x8x6xf32> -> tensor<4x2x8x6xf32>
    %b = nn.attention %s, %a, %a {scale = 1.0 : f64} : tensor<4x2x8x6xf32>, tensor<4x2x8x6xf32>, tensor<4x2x8x6xf32> -> tensor<4x2x8x6xf32>
    return %b, %q : tensor<4x2x8x6xf32>, tensor<4x2x8x6xf32>
  }
}

// -----

// Fewer heads than ranks are dealt out all the same; groups of keys that are too few, within each.
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, cp=4:sequence, tp=1:tensor">} {
  func.func @main(%q: tensor<2x6x8x4xf32>, %k: tensor<2x2x8x4xf32>, %w: tensor<2x3x8x4xf32>) -> (tensor<2x6x8x4xf32>, tensor<2x3x8x4xf32>) {
    // expected-remark @below {{--cp-mode=ulysses: nn.attention has 3 heads for the 4 ranks of cp, so some compute no attention; gather gives every rank some}}
    %a = nn.attention %q, %k, %k {scale = 1.0 : f64} : tensor<2x6x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32> -> tensor<2x6x8x4xf32>
    %b = nn.attention %w, %w, %w {scale = 1.0 : f64} : tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32> -> tensor<2x3x8x4xf32>
    return %a, %b : tensor<2x6x8x4xf32>, tensor<2x3x8x4xf32>
  }
}

// -----

// One new position, as in a step of decoding, cannot be shared; its keys are many.
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, cp=2:sequence, tp=1:tensor">} {
  // expected-remark @below {{--cp=2: a step computes one position of each sequence, so these ranks compute the same; use --tp or --dp}}
  func.func @main(%q: tensor<2x6x1x4xf32>, %k: tensor<2x6x8x4xf32>) -> tensor<2x6x1x4xf32> {
    %a = nn.attention %q, %k, %k {scale = 1.0 : f64} : tensor<2x6x1x4xf32>, tensor<2x6x8x4xf32>, tensor<2x6x8x4xf32> -> tensor<2x6x1x4xf32>
    return %a : tensor<2x6x1x4xf32>
  }
}
