// Orders along a whole dim while others are cut unevenly; an arg max, a scatter and a one-hot as the import writes them, along dims that are cut:
// positions are global, and padding neither wins nor names anything.
module attributes {exec.meshes = ["dp=2:data, tp=2:tensor", "dp=3:data, tp=2:tensor", "dp=1:data, tp=3:tensor"]} {
  func.func @main(%x: tensor<5x7xf32> {dist.seed = #dist.sharding<"[5@dp, 7@tp]">}, %n: tensor<5x7xi32> {dist.seed = #dist.sharding<"[5@tp, 7@dp]">})
      -> (tensor<5x7xi64>, tensor<5x7xi64>, tensor<5x1xi64>, tensor<1x7xi64>, tensor<5x7xf32>, tensor<5x7xi32>) {
    %s = nn.sinh %x : tensor<5x7xf32> -> tensor<5x7xf32>
    %0 = nn.sort_position %s {axis = 1 : i64} : tensor<5x7xf32> -> tensor<5x7xi64>
    %1 = nn.sort_position %s {axis = 0 : i64, descending} : tensor<5x7xf32> -> tensor<5x7xi64>

    %i = nn.iota {dim = 1 : i64, start = 0 : i64, step = 1 : i64} : tensor<1x7xi64>
    %size = nn.constant dense<7> : tensor<i64> : tensor<i64>
    %top = nn.reduce max %s {axes = array<i64: 1>} : tensor<5x7xf32> -> tensor<5x1xf32>
    %is = nn.compare eq %s, %top : tensor<5x7xf32>, tensor<5x1xf32> -> tensor<5x7xi1>
    %at = nn.select %is, %i, %size : tensor<5x7xi1>, tensor<1x7xi64>, tensor<i64> -> tensor<5x7xi64>
    %2 = nn.reduce min %at {axes = array<i64: 1>} : tensor<5x7xi64> -> tensor<5x1xi64>

    %j = nn.iota {dim = 0 : i64, start = 0 : i64, step = 1 : i64} : tensor<5x1xi64>
    %none = nn.constant dense<-1> : tensor<i64> : tensor<i64>
    %named = nn.compare eq %j, %2 : tensor<5x1xi64>, tensor<5x1xi64> -> tensor<5x1xi1>
    %last = nn.select %named, %j, %none : tensor<5x1xi1>, tensor<5x1xi64>, tensor<i64> -> tensor<5x1xi64>
    %spread = nn.broadcast %last : tensor<5x1xi64> -> tensor<5x7xi64>
    %3 = nn.reduce max %spread {axes = array<i64: 0>} : tensor<5x7xi64> -> tensor<1x7xi64>

    %bits = nn.bitcast %x : tensor<5x7xf32> -> tensor<5x7xi32>
    %two = nn.constant dense<2> : tensor<i32> : tensor<i32>
    %more = nn.shift_left %bits, %two : tensor<5x7xi32>, tensor<i32> -> tensor<5x7xi32>
    %less = nn.shift_right %more, %two : tensor<5x7xi32>, tensor<i32> -> tensor<5x7xi32>
    %4 = nn.bitcast %less : tensor<5x7xi32> -> tensor<5x7xf32>
    %5 = nn.xor %n, %less : tensor<5x7xi32>, tensor<5x7xi32> -> tensor<5x7xi32>
    return %0, %1, %2, %3, %4, %5 : tensor<5x7xi64>, tensor<5x7xi64>, tensor<5x1xi64>, tensor<1x7xi64>, tensor<5x7xf32>, tensor<5x7xi32>
  }
}
