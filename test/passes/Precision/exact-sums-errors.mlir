// RUN: hpc-opt %s --hpc-exact-sums -split-input-file -verify-diagnostics

// Sums of f64 have no wider type to be exact in.
func.func @main(%x: tensor<2x3xf64>) -> tensor<2x1xf64> {
  // expected-error @+1 {{adds up f64, and --deterministic does its exact sums in f64: they hold f32 and narrower; leave the flag out, or export the model in f32}}
  %r = nn.reduce sum %x {axes = array<i64: 1>} : tensor<2x3xf64> -> tensor<2x1xf64>
  return %r : tensor<2x1xf64>
}
