// Reshapes that merge and split cut dims (batch and heads in one dim), factors that do not nest, concat, slices with steps, pad,
// gather and running sums along dims that are cut elsewhere.
module attributes {exec.meshes = ["dp=1:data, tp=2:tensor", "dp=2:data, tp=2:tensor", "dp=3:data, tp=2:tensor", "dp=2:data, tp=3:tensor"]} {
  func.func @main(%x: tensor<4x3x5x2xf32> {dist.seed = #dist.sharding<"[4@dp, 3, 5@tp, 2]">}, %i: tensor<2xi64>)
      -> (tensor<20x6xf32>, tensor<8x15xf32>, tensor<4x3x10x2xf32>, tensor<2x3x5x2xf32>, tensor<4x5x5x3xf32>, tensor<4x3x2x2xf32>, tensor<4x3x5x2xf32>) {
    %0 = nn.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x3x5x2xf32> -> tensor<4x5x3x2xf32>
    %1 = nn.reshape %0 : tensor<4x5x3x2xf32> -> tensor<20x6xf32>
    %2 = nn.exp %1 : tensor<20x6xf32> -> tensor<20x6xf32>
    %3 = nn.reshape %2 : tensor<20x6xf32> -> tensor<8x15xf32>
    %4 = nn.concat %x, %x {axis = 2 : i64} : tensor<4x3x5x2xf32>, tensor<4x3x5x2xf32> -> tensor<4x3x10x2xf32>
    %5 = nn.slice %x {starts = array<i64: 3, 0, 4, 0>, steps = array<i64: -2, 1, -1, 1>} : tensor<4x3x5x2xf32> -> tensor<2x3x5x2xf32>
    %6 = nn.pad %x {low = array<i64: 0, 1, 0, 0>, high = array<i64: 0, 1, 0, 1>, value = 7.0 : f32} : tensor<4x3x5x2xf32> -> tensor<4x5x5x3xf32>
    %7 = nn.gather %x, %i {axis = 2 : i64} : tensor<4x3x5x2xf32>, tensor<2xi64> -> tensor<4x3x2x2xf32>
    %8 = nn.cumsum %x {axis = 1 : i64} : tensor<4x3x5x2xf32> -> tensor<4x3x5x2xf32>
    return %2, %3, %4, %5, %6, %7, %8 : tensor<20x6xf32>, tensor<8x15xf32>, tensor<4x3x10x2xf32>, tensor<2x3x5x2xf32>, tensor<4x5x5x3xf32>, tensor<4x3x2x2xf32>, tensor<4x3x5x2xf32>
  }
}
