// RUN: hpc-opt %s --hpc-tie-weights -verify-diagnostics

// A model whose weights are gone is an error that names file and parameter, not a silent miss.
// expected-error @+1 {{parameter 'a'}}
func.func @main() -> (tensor<2xf32>, tensor<2xf32>) {
  %a = nn.parameter "a" stored <file = "/no/such/model.onnx", bytes = 8, hashes = [7]> : tensor<2xf32>
  %b = nn.parameter "b" stored <file = "/no/such/model.onnx", offset = 8, bytes = 8, hashes = [7]> : tensor<2xf32>
  return %a, %b : tensor<2xf32>, tensor<2xf32>
}
