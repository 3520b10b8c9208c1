// Sums whose parts are scaled: a bias smaller than the sum, even times its scale; a scaled part of a scaled part; a part that is read twice; a product of two sums.
module attributes {exec.meshes = ["dp=1:data, tp=2:tensor", "dp=1:data, tp=3:tensor", "dp=2:data, tp=2:tensor"]} {
  func.func @main(%x: tensor<4x7xf32> {dist.seed = #dist.seed<"[4@dp, 7?]">}, %g: tensor<f32>, %h: tensor<4x1xf32>, %k: tensor<5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) {
    %w = nn.parameter "w" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %v = nn.parameter "v" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %u = nn.parameter "u" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 20, hashes = [0]> : tensor<5xf32>
    %c = nn.parameter "c" stored <file = "w", bytes = 20, hashes = [0]> : tensor<5xf32>
    %0 = nn.matmul %x, %w : tensor<4x7xf32>, tensor<7x5xf32> -> tensor<4x5xf32>
    %1 = nn.matmul %x, %v : tensor<4x7xf32>, tensor<7x5xf32> -> tensor<4x5xf32>
    %2 = nn.matmul %x, %u : tensor<4x7xf32>, tensor<7x5xf32> -> tensor<4x5xf32>
    %3 = nn.add %0, %b : tensor<4x5xf32>, tensor<5xf32> -> tensor<4x5xf32>
    %4 = nn.mul %3, %g : tensor<4x5xf32>, tensor<f32> -> tensor<4x5xf32>
    %5 = nn.add %c, %4 : tensor<5xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
    %6 = nn.mul %h, %5 : tensor<4x1xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
    %7 = nn.add %6, %1 : tensor<4x5xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
    %8 = nn.add %1, %b : tensor<4x5xf32>, tensor<5xf32> -> tensor<4x5xf32>
    %9 = nn.mul %8, %k : tensor<4x5xf32>, tensor<5xf32> -> tensor<4x5xf32>
    %10 = nn.add %9, %2 : tensor<4x5xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
    %11 = nn.add %2, %c : tensor<4x5xf32>, tensor<5xf32> -> tensor<4x5xf32>
    %12 = nn.add %1, %b : tensor<4x5xf32>, tensor<5xf32> -> tensor<4x5xf32>
    %13 = nn.mul %11, %12 : tensor<4x5xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
    %14 = nn.add %13, %1 : tensor<4x5xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
    return %7, %10, %14 : tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>
  }
}
