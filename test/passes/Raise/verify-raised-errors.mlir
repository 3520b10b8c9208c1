// RUN: hpc-opt %s --hpc-verify-raised --split-input-file -verify-diagnostics

// A GELU left in pieces names its node and the pass that should have raised it.
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %root = nn.constant dense<1.41421354> : tensor<f32> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
  %u = nn.div %x, %root : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  // expected-error @unknown {{spelled-out GELU is left at node '/mlp/Erf'; run hpc-raise-gelu}}
  %t = nn.erf %u : tensor<3xf32> -> tensor<3xf32> loc("/mlp/Erf")
  %o = nn.add %t, %one : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %p = nn.mul %x, %o : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %y = nn.mul %p, %half : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %n = nn.constant dense<0.25> : tensor<f32> : tensor<f32>
  %epsilon = nn.constant dense<1.0E-5> : tensor<f32> : tensor<f32>
  %square = nn.mul %x, %x : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
  %sum = nn.reduce sum %square {axes = array<i64: 1>} : tensor<3x4xf32> -> tensor<3x1xf32>
  %mean = nn.mul %sum, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %shifted = nn.add %mean, %epsilon : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %root = nn.sqrt %shifted : tensor<3x1xf32> -> tensor<3x1xf32>
  // expected-error @below {{spelled-out RMS norm is left}}
  %y = nn.div %x, %root : tensor<3x4xf32>, tensor<3x1xf32> -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

func.func @main(%q: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %s = nn.matmul %q, %q {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %s : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  // expected-error @below {{spelled-out attention is left}}
  %y = nn.matmul %p, %q : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A shared embedding is one weight.
func.func @main(%ids: tensor<2xi64>, %x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x3xf32>) {
  // expected-note @below {{the other one}}
  %a = nn.parameter "wte" {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
  // expected-error @below {{parameter 'head' is parameter 'wte' transposed; run hpc-tie-weights}}
  %b = nn.parameter "head" {value = dense<[[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]> : tensor<2x3xf32>} : tensor<2x3xf32>
  %e = nn.embedding %a, %ids {vocabulary = 3 : i64} : tensor<3x2xf32>, tensor<2xi64> -> tensor<2x2xf32>
  %y = nn.matmul %x, %b : tensor<2x2xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return %e, %y : tensor<2x2xf32>, tensor<2x3xf32>
}

// -----

// A gather alone reads the log-probabilities.
func.func @main(%x: tensor<4x7xf32>, %labels: tensor<4x1xi64>) -> tensor<4xf32> {
  %top = nn.reduce max %x {axes = array<i64: 1>} : tensor<4x7xf32> -> tensor<4x1xf32>
  %low = nn.sub %x, %top : tensor<4x7xf32>, tensor<4x1xf32> -> tensor<4x7xf32>
  %e = nn.exp %low : tensor<4x7xf32> -> tensor<4x7xf32>
  %sum = nn.reduce sum %e {axes = array<i64: 1>} : tensor<4x7xf32> -> tensor<4x1xf32>
  %log = nn.log %sum : tensor<4x1xf32> -> tensor<4x1xf32>
  %logs = nn.sub %low, %log : tensor<4x7xf32>, tensor<4x1xf32> -> tensor<4x7xf32>
  // expected-error @below {{spelled-out cross entropy is left}}
  %own = nn.gather_nd %logs, %labels {batch_dims = 1 : i64} : tensor<4x7xf32>, tensor<4x1xi64> -> tensor<4xf32>
  return %own : tensor<4xf32>
}
