// RUN: hpc-opt %s --hpc-annotate-sidecar -split-input-file -verify-diagnostics
// Through the command line: test/Sidecar/errors.test.

// A dumped phase that somebody edited is no reason to crash.
// expected-error @below {{[model] hpc.sidecar is not of the form {file = "...", text = "..."}; leave the attribute as hpc-opt --dump-phases wrote it}}
module attributes {hpc.sidecar = "gpt2.shard.json"} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}

// -----

// The text is read again wherever it is needed, and with the same care.
// expected-error @below {{[sidecar] s.json:1: there is no "version"; write "version": 1}}
module attributes {hpc.sidecar = {file = "s.json", text = "{}"}, dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}

// -----

// A scalar has no dims to cut.
// expected-error @below {{[sidecar] s.json:1: parameter 'w': dim 0 is out of range, the shape is []; leave the rule's cuts out}}
module attributes {hpc.sidecar = {file = "s.json", text = "{\22version\22: 1, \22params\22: [{\22match\22: \22w\22, \22shard\22: [{\22dim\22: 0, \22axis\22: \22tp\22}]}]}"}, dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 4, hashes = [0]> : tensor<f32>
    %0 = nn.add %x, %w : tensor<f32>, tensor<f32> -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A dim of 2^62 is no dim that sizes multiply to by wrapping round.
// expected-error @below {{[sidecar] s.json:1: tensor 'input x': "of": [4294967296, 4294967296] does not multiply to dim 0, whose size is 4 of [4]}}
module attributes {hpc.sidecar = {file = "s.json", text = "{\22version\22: 1, \22tensors\22: [{\22match\22: \22x\22, \22shard\22: [{\22dim\22: 0, \22of\22: [4294967296, 4294967296], \22at\22: 0, \22axis\22: \22tp\22}]}]}"}, dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4xf32> {nn.name = "x"}) -> tensor<4xf32> {
    %0 = nn.exp %x : tensor<4xf32> -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
