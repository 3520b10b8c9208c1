// RUN: hpc-opt %s --split-input-file --hpc-keep-logits=length=8 -verify-diagnostics

// A classifier.
module {
  // expected-error @below {{[model] --generate needs one output of logits, floats [batch, 8, vocabulary], and the model has none: 'classes' (tensor<2x20xf32>); export it with the logits alone}}
  func.func @main(%x: tensor<2x20xf32> {nn.name = "x"}) -> (tensor<2x20xf32> {nn.name = "classes"}) {
    return %x : tensor<2x20xf32>
  }
}

// -----

// Two outputs that could be logits, of which no table tells which.
module {
  // expected-error @below {{[model] --generate needs one output of logits, floats [batch, 8, vocabulary], and the model has several: 'a' (tensor<2x8x20xf32>), 'b' (tensor<2x8x20xf32>)}}
  func.func @main(%ids: tensor<2x8xi64> {nn.name = "ids"}) -> (tensor<2x8x20xf32> {nn.name = "a"}, tensor<2x8x20xf32> {nn.name = "b"}) {
    %table = nn.parameter "table" stored <file = "w", bytes = 1600, hashes = [1]> : tensor<20x20xf32>
    %e = nn.embedding %table, %ids {vocabulary = 20 : i64} : tensor<20x20xf32>, tensor<2x8xi64> -> tensor<2x8x20xf32>
    %t = nn.tanh %e : tensor<2x8x20xf32> -> tensor<2x8x20xf32>
    return %e, %t : tensor<2x8x20xf32>, tensor<2x8x20xf32>
  }
}

// -----

// What a caller would have to give in each step.
module {
  // expected-error @below {{[model] --generate fills one input, ids [batch, 8], and the model also reads 'image' (tensor<2x8x20xf32>); bind other inputs with --const NAME=FILE, or export the model without}}
  func.func @main(%ids: tensor<2x8xi64> {nn.name = "ids"}, %image: tensor<2x8x20xf32> {nn.name = "image"}) -> (tensor<2x8x20xf32> {nn.name = "logits"}) {
    %table = nn.parameter "table" stored <file = "w", bytes = 1600, hashes = [1]> : tensor<20x20xf32>
    %e = nn.embedding %table, %ids {vocabulary = 20 : i64} : tensor<20x20xf32>, tensor<2x8xi64> -> tensor<2x8x20xf32>
    %y = nn.add %e, %image : tensor<2x8x20xf32>, tensor<2x8x20xf32> -> tensor<2x8x20xf32>
    return %y : tensor<2x8x20xf32>
  }
}

// -----

// No ids at all.
module {
  // expected-error @below {{and the model reads 'image' (tensor<2x8x20xf32>)}}
  func.func @main(%image: tensor<2x8x20xf32> {nn.name = "image"}) -> (tensor<2x8x20xf32> {nn.name = "logits"}) {
    return %image : tensor<2x8x20xf32>
  }
}
