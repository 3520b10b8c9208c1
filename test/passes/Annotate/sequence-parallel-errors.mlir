// RUN: hpc-opt %s -split-input-file --hpc-annotate-tensor-parallel="layout=1d+sp" -verify-diagnostics

// Without attention nothing says which dim holds positions.
// expected-error @below {{[unsupported] --sp cuts the positions of a sequence, and the model has no attention (nn.attention), from which these are found; leave --sp out}}
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%a: tensor<4x33xf32>) -> tensor<4x33xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<33x33xf32>} : tensor<33x33xf32>
    %b = nn.matmul %a, %w : tensor<4x33xf32>, tensor<33x33xf32> -> tensor<4x33xf32>
    return %b : tensor<4x33xf32>
  }
}
