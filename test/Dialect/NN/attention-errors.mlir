// RUN: hpc-opt %s --split-input-file --verify-diagnostics

// Keys in another type than queries: no library has such a product, and none should have to convert in secret.
func.func @mixed(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xbf16>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C4) query, key and value need one float element type and the result a float one}}
  %0 = nn.attention %q, %k, %k {scale = 1.0} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xbf16>, tensor<1x2x3x4xbf16> -> tensor<1x2x3x4xf32>
  return %0 : tensor<1x2x3x4xf32>
}
