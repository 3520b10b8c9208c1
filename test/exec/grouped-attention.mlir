// Six query heads share three groups of keys; a mask built from positions, and an additive bias per head.
module attributes {exec.meshes = ["tp=2:tensor", "tp=3:tensor", "tp=4:tensor"]} {
  func.func @main(%q: tensor<2x6x3x2xf32> {dist.seed = #dist.sharding<"[2, (3@tp, 2), 3, 2]">}, %k: tensor<2x3x3x2xf32>, %v: tensor<2x3x3x4xf32>)
      -> (tensor<2x6x3x4xf32>, tensor<2x6x3x3xf32>) {
    %bias = nn.parameter "bias" stored <file = "w", bytes = 24, hashes = [0]> : tensor<1x6x1x1xf32>
    %rows = nn.iota {dim = 2 : i64} : tensor<1x1x3x1xi64>
    %columns = nn.iota {dim = 3 : i64} : tensor<1x1x1x3xi64>
    %visible = nn.compare ge %rows, %columns : tensor<1x1x3x1xi64>, tensor<1x1x1x3xi64> -> tensor<1x1x3x3xi1>
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %low = nn.constant dense<-1.0e9> : tensor<f32> : tensor<f32>
    %mask = nn.select %visible, %zero, %low : tensor<1x1x3x3xi1>, tensor<f32>, tensor<f32> -> tensor<1x1x3x3xf32>
    %all = nn.add %mask, %bias : tensor<1x1x3x3xf32>, tensor<1x6x1x1xf32> -> tensor<1x6x3x3xf32>
    %0 = nn.attention %q, %k, %v bias %all : tensor<1x6x3x3xf32> {scale = 0.7} : tensor<2x6x3x2xf32>, tensor<2x3x3x2xf32>, tensor<2x3x3x4xf32> -> tensor<2x6x3x4xf32>
    %1 = nn.matmul %q, %q {transpose_rhs} : tensor<2x6x3x2xf32>, tensor<2x6x3x2xf32> -> tensor<2x6x3x3xf32>
    return %0, %1 : tensor<2x6x3x4xf32>, tensor<2x6x3x3xf32>
  }
}
