// Every kind of reduction over dims that are cut unevenly, over one axis and over two.
module attributes {exec.meshes = ["dp=1:data, tp=2:tensor", "dp=2:data, tp=2:tensor", "dp=3:data, tp=2:tensor"]} {
  func.func @main(%x: tensor<5x7xf32> {dist.seed = #dist.sharding<"[5@dp, 7@tp]">}, %n: tensor<5x7xi64> {dist.seed = #dist.sharding<"[5@tp, 7@dp]">})
      -> (tensor<5x1xf32>, tensor<1x7xf32>, tensor<1x1xf32>, tensor<5x1xf32>, tensor<1x1xf32>, tensor<1x1xi64>, tensor<1x7xi64>) {
    %e = nn.exp %x : tensor<5x7xf32> -> tensor<5x7xf32>
    %0 = nn.reduce sum %e {axes = array<i64: 1>} : tensor<5x7xf32> -> tensor<5x1xf32>
    %1 = nn.reduce max %e {axes = array<i64: 0>} : tensor<5x7xf32> -> tensor<1x7xf32>
    %2 = nn.reduce min %e {axes = array<i64: 0, 1>} : tensor<5x7xf32> -> tensor<1x1xf32>
    %3 = nn.reduce prod %e {axes = array<i64: 1>} : tensor<5x7xf32> -> tensor<5x1xf32>
    %6 = nn.reduce prod %e {axes = array<i64: 0, 1>} : tensor<5x7xf32> -> tensor<1x1xf32>
    %m = nn.mul %n, %n : tensor<5x7xi64>, tensor<5x7xi64> -> tensor<5x7xi64>
    %4 = nn.reduce sum %m {axes = array<i64: 0, 1>} : tensor<5x7xi64> -> tensor<1x1xi64>
    %5 = nn.reduce max %m {axes = array<i64: 0>} : tensor<5x7xi64> -> tensor<1x7xi64>
    return %0, %1, %2, %3, %6, %4, %5 : tensor<5x1xf32>, tensor<1x7xf32>, tensor<1x1xf32>, tensor<5x1xf32>, tensor<1x1xf32>, tensor<1x1xi64>, tensor<1x7xi64>
  }
}
