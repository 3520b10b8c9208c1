// Positions of a cut dim: every rank counts from its own offset.
module attributes {exec.meshes = ["dp=1:data, tp=2:tensor", "dp=1:data, tp=3:tensor", "dp=2:data, tp=2:tensor"]} {
  func.func @main(%x: tensor<3x7xf32> {dist.seed = #dist.sharding<"[3@dp, 7@tp]">}) -> tensor<3x7xf32> {
    %0 = nn.iota {dim = 1 : i64, start = 5 : i64, step = -2 : i64} : tensor<3x7xi64>
    %1 = nn.cast %0 : tensor<3x7xi64> -> tensor<3x7xf32>
    %2 = nn.mul %x, %1 : tensor<3x7xf32>, tensor<3x7xf32> -> tensor<3x7xf32>
    return %2 : tensor<3x7xf32>
  }
}
