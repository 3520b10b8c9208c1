// Two partial sums are added and scattered once, between full terms and scaled or not; the columns' sum is taken of the pieces. Rows are uneven. A term that is scattered twice or not at all, a scale
// that only one piece gets, or padding that is summed gives other numbers.
module attributes {exec.meshes = ["mb=1:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=3:tensor", "mb=1:time, dp=2:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=7:tensor"]} {
  func.func @main(%x: tensor<2x5x7xf32> {dist.seed = #dist.seed<"[2@dp, 5?, 7?]">}, %z: tensor<2x5x6xf32>, %k: tensor<6xf32>)
      -> (tensor<2x5x6xf32>, tensor<1x1x6xf32>, tensor<2x5x6xf32>, tensor<2x5x6xf32>) {
    %w = nn.parameter "w" stored <file = "w", bytes = 168, hashes = [0]> {dist.seed = #dist.sharding<"[7@tp, 6]">} : tensor<7x6xf32>
    %v = nn.parameter "v" stored <file = "w", bytes = 168, hashes = [0]> {dist.seed = #dist.sharding<"[7@tp, 6]">} : tensor<7x6xf32>
    %y = nn.matmul %x, %w : tensor<2x5x7xf32>, tensor<7x6xf32> -> tensor<2x5x6xf32>
    %s = nn.add %y, %z {dist.seed = #dist.seed<"[2?, 5@tp, 6]">} : tensor<2x5x6xf32>, tensor<2x5x6xf32> -> tensor<2x5x6xf32>
    %u = nn.matmul %x, %v : tensor<2x5x7xf32>, tensor<7x6xf32> -> tensor<2x5x6xf32>
    %b = nn.add %u, %k {dist.seed = #dist.seed<"[2?, 5@tp, 6]">} : tensor<2x5x6xf32>, tensor<6xf32> -> tensor<2x5x6xf32>
    %m = nn.mul %b, %k : tensor<2x5x6xf32>, tensor<6xf32> -> tensor<2x5x6xf32>
    %r = nn.add %s, %m {dist.seed = #dist.seed<"[2?, 5@tp, 6]">} : tensor<2x5x6xf32>, tensor<2x5x6xf32> -> tensor<2x5x6xf32>
    %g = nn.matmul %x, %w : tensor<2x5x7xf32>, tensor<7x6xf32> -> tensor<2x5x6xf32>
    %d = nn.reduce sum %g {axes = array<i64: 0, 1>} : tensor<2x5x6xf32> -> tensor<1x1x6xf32>
    %e = nn.mul %g, %z {dist.seed = #dist.seed<"[2?, 5@tp, 6]">} : tensor<2x5x6xf32>, tensor<2x5x6xf32> -> tensor<2x5x6xf32>
    %p = nn.matmul %x, %w : tensor<2x5x7xf32>, tensor<7x6xf32> -> tensor<2x5x6xf32>
    %q = nn.matmul %x, %v : tensor<2x5x7xf32>, tensor<7x6xf32> -> tensor<2x5x6xf32>
    %t = nn.add %p, %q {dist.seed = #dist.seed<"[2?, 5@tp, 6]">} : tensor<2x5x6xf32>, tensor<2x5x6xf32> -> tensor<2x5x6xf32>
    return %r, %d, %e, %t : tensor<2x5x6xf32>, tensor<1x1x6xf32>, tensor<2x5x6xf32>, tensor<2x5x6xf32>
  }
}
