// Where partial sums may pass and where they must be resolved: sums of partials, a full operand, a product of two, a choice
// with a literal 0, a negation, a cast to a wider type.
module attributes {exec.meshes = ["dp=1:data, tp=2:tensor", "dp=1:data, tp=3:tensor", "dp=2:data, tp=2:tensor"]} {
  func.func @main(%x: tensor<2x5xf32> {dist.seed = #dist.sharding<"[2, 5@tp]">}, %y: tensor<2x5xf32> {dist.seed = #dist.sharding<"[2, 5@dp]">},
      %f: tensor<2x4xf32>, %m: tensor<2x4xi1>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf64>, tensor<2x4xf32>) {
    %w = nn.parameter "w" stored <file = "w", bytes = 80, hashes = [0]> : tensor<5x4xf32>
    %v = nn.parameter "v" stored <file = "w", bytes = 80, hashes = [0]> : tensor<5x4xf32>
    %u = nn.parameter "u" stored <file = "w", bytes = 80, hashes = [0]> : tensor<5x4xf32>
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %a = nn.matmul %x, %w : tensor<2x5xf32>, tensor<5x4xf32> -> tensor<2x4xf32>
    %b = nn.matmul %x, %v : tensor<2x5xf32>, tensor<5x4xf32> -> tensor<2x4xf32>
    %c = nn.matmul %y, %u : tensor<2x5xf32>, tensor<5x4xf32> -> tensor<2x4xf32>
    %0 = nn.add %a, %f : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
    %1 = nn.sub %0, %b : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
    %2 = nn.mul %a, %b : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
    %3 = nn.select %m, %a, %zero : tensor<2x4xi1>, tensor<2x4xf32>, tensor<f32> -> tensor<2x4xf32>
    %4 = nn.neg %3 : tensor<2x4xf32> -> tensor<2x4xf32>
    %5 = nn.cast %b : tensor<2x4xf32> -> tensor<2x4xf64>
    %6 = nn.add %a, %c : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
    return %1, %2, %4, %5, %6 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf64>, tensor<2x4xf32>
  }
}
