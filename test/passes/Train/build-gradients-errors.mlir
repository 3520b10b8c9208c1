// RUN: hpc-opt %s --hpc-build-gradients=freeze=frozen* -split-input-file -verify-diagnostics

// A gradient of nothing is nothing.
// expected-error @below {{there is no result 'loss' that is one float; run hpc-append-loss}}
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32> {nn.name = "loss"}) {
  return %x : tensor<2xf32>
}

// -----

// A step without an update would run for nothing.
// expected-error @below {{there is nothing to train: no parameter is both a float and not frozen}}
func.func @main() -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter "frozen.w" stored <file = "w", bytes = 4, hashes = [0]> : tensor<f32>
  return %w : tensor<f32>
}

// -----

// So would one whose parameters do not matter.
// expected-error @below {{there is nothing to train: the loss depends on no such parameter}}
func.func @main(%x: tensor<f32>) -> (tensor<f32> {nn.name = "loss"}) {
  %f = nn.parameter "frozen.w" stored <file = "w", bytes = 4, hashes = [0]> : tensor<f32>
  %w = nn.parameter "w" stored <file = "w", bytes = 4, hashes = [0]> : tensor<f32>
  return %x : tensor<f32>
}

// -----

// A pattern that freezes nothing is a slip of the pen.
// expected-error @below {{--freeze=frozen* matches no parameter}}
func.func @main() -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter "w" stored <file = "w", bytes = 4, hashes = [0]> : tensor<f32>
  return %w : tensor<f32>
}

// -----

// An op without a rule stops only what has to pass it, and says which op of the model it is.
func.func @main() -> (tensor<f32> {nn.name = "loss"}) {
  %f = nn.parameter "frozen.w" stored <file = "w", bytes = 4, hashes = [0]> : tensor<f32>
  %w = nn.parameter "w" stored <file = "w", bytes = 2, hashes = [0]> : tensor<f16>
  // expected-error @unknown {{a gradient must flow through nn.bitcast (bits of w), which has no rule for it; freeze what it reads (--freeze=w), or take the loss of another output (--loss=KIND:NAME)}}
  %b = nn.bitcast %w : tensor<f16> -> tensor<bf16> loc("bits of w")
  %c = nn.cast %b : tensor<bf16> -> tensor<f32>
  %loss = nn.mul %c, %f : tensor<f32>, tensor<f32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The biases of a fresh model are one initializer in the file of an exporter that merges equal ones: trained as one they are another model, silently.
// So is a matrix that has the same place in several layers, while one of an embedding and a head is tied on purpose, as is a vector of one module that is run twice.
func.func @main(%x: tensor<2x2xf32>) -> (tensor<f32> {nn.name = "loss"}) {
  %f = nn.parameter "frozen.w" stored <file = "w", bytes = 4, hashes = [0]> : tensor<f32>
  // expected-warning @below {{'b' is one parameter of 2 modules (h.0.fc, h.1.fc) and is trained as one; exporters merge initializers of equal content}}
  %b = nn.parameter "b" stored <file = "w", bytes = 8, hashes = [1]> : tensor<2xf32>
  %c = nn.parameter "c" stored <file = "w", bytes = 8, hashes = [2]> : tensor<2xf32>
  // expected-warning @below {{'w' is one parameter of 2 modules (h.0.fc, h.1.fc) and is trained as one; exporters merge initializers of equal content, as those of a fresh model are: if these are to differ, export with torch.onnx.export(..., dynamo=True, optimize=False), which keeps them apart, or move them a little before the export}}
  %w = nn.parameter "w" stored <file = "w", bytes = 16, hashes = [3]> : tensor<2x2xf32>
  %t = nn.parameter "tied" stored <file = "w", bytes = 16, hashes = [4]> : tensor<2x2xf32>
  %e = nn.matmul %x, %t : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32> loc("e"("wte"))
  %0 = nn.matmul %e, %w : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32> loc("0"("h.0.fc"))
  %1 = nn.add %0, %b : tensor<2x2xf32>, tensor<2xf32> -> tensor<2x2xf32> loc("1"("h.0.fc"))
  %2 = nn.matmul %1, %w : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32> loc("2"("h.1.fc"))
  %3 = nn.add %2, %b : tensor<2x2xf32>, tensor<2xf32> -> tensor<2x2xf32> loc("3"("h.1.fc"))
  %4 = nn.add %3, %c : tensor<2x2xf32>, tensor<2xf32> -> tensor<2x2xf32> loc("4"("norm"))
  %5 = nn.add %4, %c : tensor<2x2xf32>, tensor<2xf32> -> tensor<2x2xf32> loc("5"("norm"))
  %6 = nn.matmul %5, %t : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32> loc("6"("lm_head"))
  %sum = nn.reduce sum %6 {axes = array<i64: 0, 1>} : tensor<2x2xf32> -> tensor<1x1xf32>
  %loss = nn.reshape %sum : tensor<1x1xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A table of cosines that an exporter has computed looks like a weight; who trains it should know.
func.func @main(%x: tensor<2xf32>) -> (tensor<f32> {nn.name = "loss"}) {
  // expected-warning @below {{'cos.table' is trained, but the exporter has computed it from 'rotary.inv_freq', 'arange', 'cos' and 2 other values, which the file no longer has; if it is a table, leave it as it is with --freeze=cos.table; torch.onnx.export(..., optimize=False) keeps the parameters that the model has}}
  %t = nn.parameter "cos.table" stored <file = "w", bytes = 8, hashes = [0]> {made_of = ["arange", "cos", "rotary.inv_freq", "mul", "val_0"]} : tensor<2xf32>
  // expected-warning @below {{'w' is trained, but the exporter has computed it from 'v.weight' and 'val_1', which}}
  %w = nn.parameter "w" stored <file = "w", bytes = 8, hashes = [1]> {made_of = ["val_1", "v.weight"]} : tensor<2xf32>
  %f = nn.parameter "frozen.w" stored <file = "w", bytes = 8, hashes = [2]> {made_of = ["arange", "cos"]} : tensor<2xf32>
  %0 = nn.mul %x, %t : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  %1 = nn.mul %0, %w : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  %2 = nn.mul %1, %f : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  %sum = nn.reduce sum %2 {axes = array<i64: 0>} : tensor<2xf32> -> tensor<1xf32>
  %loss = nn.reshape %sum : tensor<1xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A sidecar that leaves nothing to train is named by its line.
module attributes {hpc.sidecar = {file = "s.json", text = "{\22version\22: 1, \22params\22: [\n {\22match\22: \22?\22, \22trainable\22: false}]}"}} {
  // expected-error @below {{[sidecar] s.json:2: "?" leaves nothing to train: no parameter is both a float and not frozen; match less, or name what is trained in a rule before it, with "trainable": true}}
  func.func @main() -> (tensor<f32> {nn.name = "loss"}) {
    %f = nn.parameter "frozen.w" stored <file = "w", bytes = 4, hashes = [0]> : tensor<f32>
    %w = nn.parameter "w" stored <file = "w", bytes = 4, hashes = [0]> : tensor<f32>
    %loss = nn.mul %w, %f : tensor<f32>, tensor<f32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A slip in a pattern would train what was to be left alone.
// expected-error @below {{[sidecar] s.json:1: "*.weigth" matches no parameter; the nearest is 'frozen.weight'}}
module attributes {hpc.sidecar = {file = "s.json", text = "{\22version\22: 1, \22params\22: [{\22match\22: \22*.weigth\22, \22trainable\22: false}]}"}} {
  func.func @main() -> (tensor<f32> {nn.name = "loss"}) {
    %f = nn.parameter "frozen.weight" stored <file = "w", bytes = 4, hashes = [0]> : tensor<f32>
    %w = nn.parameter "w" stored <file = "w", bytes = 4, hashes = [0]> : tensor<f32>
    %loss = nn.mul %w, %f : tensor<f32>, tensor<f32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
