// The first query sees nothing: its result is 0 and not NaN, whether heads are cut or queries.
module attributes {exec.meshes = ["tp=2:tensor", "tp=4:tensor"]} {
  func.func @main(%q: tensor<2x3x4x2xf32> {dist.seed = #dist.sharding<"[2, 3@tp, 4, 2]">}, %p: tensor<2x3x4x2xf32> {dist.seed = #dist.sharding<"[2, 3, 4@tp, 2]">},
                  %k: tensor<2x3x4x2xf32>) -> (tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32>) {
    %rows = nn.iota {dim = 2 : i64} : tensor<1x1x4x1xi64>
    %columns = nn.iota {dim = 3 : i64} : tensor<1x1x1x4xi64>
    %visible = nn.compare gt %rows, %columns : tensor<1x1x4x1xi64>, tensor<1x1x1x4xi64> -> tensor<1x1x4x4xi1>
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
    %mask = nn.select %visible, %zero, %low : tensor<1x1x4x4xi1>, tensor<f32>, tensor<f32> -> tensor<1x1x4x4xf32>
    %0 = nn.attention %q, %k, %k bias %mask : tensor<1x1x4x4xf32> {guarded, scale = 0.7 : f64} : tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32> -> tensor<2x3x4x2xf32>
    %1 = nn.attention %p, %k, %k bias %mask : tensor<1x1x4x4xf32> {guarded, scale = 0.7 : f64} : tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32> -> tensor<2x3x4x2xf32>
    return %0, %1 : tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32>
  }
}
