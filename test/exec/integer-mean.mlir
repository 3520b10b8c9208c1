// Integer division truncates, so it is not linear: a mean of integers over a cut batch must be divided after the sum is complete,
// or 1 + 1 over 2 ranks becomes 1 / 2 + 1 / 2 = 0. A minimum of large integers over an uneven cut needs the exact identity.
module attributes {exec.meshes = ["dp=1:data", "dp=2:data", "dp=3:data", "dp=5:data"]} {
  func.func @main(%x: tensor<5x3xi64> {dist.seed = #dist.sharding<"[5@dp, 3]">}) -> (tensor<1x3xi64>, tensor<1x3xi64>) {
    %count = nn.constant dense<2> : tensor<i64> : tensor<i64>
    %huge = nn.constant dense<9223372036854775800> : tensor<i64> : tensor<i64>
    %sum = nn.reduce sum %x {axes = array<i64: 0>} : tensor<5x3xi64> -> tensor<1x3xi64>
    %mean = nn.div %sum, %count : tensor<1x3xi64>, tensor<i64> -> tensor<1x3xi64>
    %large = nn.max %x, %huge : tensor<5x3xi64>, tensor<i64> -> tensor<5x3xi64>
    %least = nn.reduce min %large {axes = array<i64: 0>} : tensor<5x3xi64> -> tensor<1x3xi64>
    return %mean, %least : tensor<1x3xi64>, tensor<1x3xi64>
  }
}
