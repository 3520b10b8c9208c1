// RUN: hpc-opt %s --split-input-file --hpc-prove-causal -verify-diagnostics

// No mask: an encoder.
module {
  func.func @main(%x: tensor<1x2x2x4xf32> {nn.name = "x"}, %position: tensor<i64> {nn.step_scalar = "position"}, %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"})
      -> (tensor<1x2x2x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}) {
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x2x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    // expected-error @below {{[unsupported] --generate: nn.attention is not causal: each position sees all others; a step has no later keys than its own, so generate with a decoder, whose attention hides them}}
    %a = nn.attention %x, %k, %k {scale = 0.5 : f64} : tensor<1x2x2x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x2x4xf32>
    return %a, %k : tensor<1x2x2x4xf32>, tensor<1x2x8x4xf32>
  }
}

// -----

// A prefix of 6 that all positions see: the first that sees a later one is named.
module {
  func.func @main(%x: tensor<1x2x2x4xf32> {nn.name = "x"}, %position: tensor<i64> {nn.step_scalar = "position"}, %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"})
      -> (tensor<1x2x2x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}) {
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x2x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    %row = nn.iota offset %position : tensor<i64> {dim = 2 : i64} : tensor<1x1x2x1xi64>
    %column = nn.iota {dim = 3 : i64} : tensor<1x1x1x8xi64>
    %six = nn.constant dense<6> : tensor<i64> : tensor<i64>
    %seen = nn.compare ge %row, %column : tensor<1x1x2x1xi64>, tensor<1x1x1x8xi64> -> tensor<1x1x2x8xi1>
    %prefix = nn.compare lt %column, %six : tensor<1x1x1x8xi64>, tensor<i64> -> tensor<1x1x1x8xi1>
    %either = nn.or %seen, %prefix : tensor<1x1x2x8xi1>, tensor<1x1x1x8xi1> -> tensor<1x1x2x8xi1>
    // expected-error @below {{is not causal: position 0 sees position 1}}
    %a = nn.attention %x, %k, %k visible %either : tensor<1x1x2x8xi1> {scale = 0.5 : f64, hidden = -1.0e9 : f64} : tensor<1x2x2x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x2x4xf32>
    return %a, %k : tensor<1x2x2x4xf32>, tensor<1x2x8x4xf32>
  }
}

// -----

// A number that masks nothing.
module {
  func.func @main(%x: tensor<1x2x1x4xf32> {nn.name = "x"}, %position: tensor<i64> {nn.step_scalar = "position"}, %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"})
      -> (tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}) {
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x1x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    %column = nn.iota {dim = 3 : i64} : tensor<1x1x1x8xi64>
    %seen = nn.compare le %column, %position : tensor<1x1x1x8xi64>, tensor<i64> -> tensor<1x1x1x8xi1>
    // expected-error @below {{is not causal: position 0 sees position 1}}
    %a = nn.attention %x, %k, %k visible %seen : tensor<1x1x1x8xi1> {scale = 0.5 : f64, hidden = -5.0 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    return %a, %k : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>
  }
}

// -----

// A mask that hides a query's own position as well: such a row reads zeros of later ones.
module {
  func.func @main(%x: tensor<1x2x1x4xf32> {nn.name = "x"}, %position: tensor<i64> {nn.step_scalar = "position"}, %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"})
      -> (tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}) {
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x1x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    %column = nn.iota {dim = 3 : i64} : tensor<1x1x1x8xi64>
    %seen = nn.compare lt %column, %position : tensor<1x1x1x8xi64>, tensor<i64> -> tensor<1x1x1x8xi1>
    // expected-error @below {{is not causal: position 0 sees no position}}
    %a = nn.attention %x, %k, %k visible %seen : tensor<1x1x1x8xi1> {scale = 0.5 : f64, hidden = -1.0e9 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    return %a, %k : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>
  }
}

// -----

// A mask from an input.
module {
  func.func @main(%x: tensor<1x2x1x4xf32> {nn.name = "x"}, %mask: tensor<1x1x1x8xf32> {nn.name = "mask"}, %position: tensor<i64> {nn.step_scalar = "position"},
                  %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"}) -> (tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}) {
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x1x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    // expected-error @below {{is not causal: which positions it hides depends on an input}}
    %a = nn.attention %x, %k, %k bias %mask : tensor<1x1x1x8xf32> {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    return %a, %k : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>
  }
}

// -----

// A mask in a weight whose file is not there.
module {
  func.func @main(%x: tensor<1x2x1x4xf32> {nn.name = "x"}, %position: tensor<i64> {nn.step_scalar = "position"},
                  %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"}) -> (tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}) {
    %mask = nn.parameter "attn.bias" stored <file = "w", bytes = 32> : tensor<1x1x1x8xf32>
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x1x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    // expected-error @below {{is not causal: which positions it hides is in weight 'attn.bias', whose file is not there}}
    %a = nn.attention %x, %k, %k bias %mask : tensor<1x1x1x8xf32> {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    return %a, %k : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>
  }
}
