// A column-cut and a row-cut matmul round a GELU, 7 columns over tp: the padding of the hidden layer must not reach the sum,
// and the bias must be added once.
module attributes {exec.meshes = ["mb=1:time, dp=1:data, tp=1:tensor", "mb=1:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=3:tensor", "mb=1:time, dp=2:data, tp=4:tensor", "mb=2:time, dp=2:data, tp=2:tensor"]} {
  func.func @main(%x: tensor<4x3x6xf32> {dist.seed = #dist.sharding<"[4@(mb, dp), 3, 6]">}) -> tensor<4x3x6xf32> {
    %g = nn.parameter "gain" stored <file = "w", bytes = 24, hashes = [0]> : tensor<6xf32>
    %w1 = nn.parameter "w1" stored <file = "w", bytes = 168, hashes = [0]> {dist.seed = #dist.sharding<"[6, 7@tp]">} : tensor<6x7xf32>
    %b1 = nn.parameter "b1" stored <file = "w", bytes = 28, hashes = [0]> : tensor<7xf32>
    %w2 = nn.parameter "w2" stored <file = "w", bytes = 168, hashes = [0]> {dist.seed = #dist.sharding<"[7@tp, 6]">} : tensor<7x6xf32>
    %b2 = nn.parameter "b2" stored <file = "w", bytes = 24, hashes = [0]> : tensor<6xf32>
    %n = nn.layer_norm %x weight %g : tensor<6xf32> {epsilon = 1.0e-5} : tensor<4x3x6xf32> -> tensor<4x3x6xf32>
    %0 = nn.matmul %n, %w1 : tensor<4x3x6xf32>, tensor<6x7xf32> -> tensor<4x3x7xf32>
    %1 = nn.add %0, %b1 : tensor<4x3x7xf32>, tensor<7xf32> -> tensor<4x3x7xf32>
    %2 = nn.gelu %1 : tensor<4x3x7xf32> -> tensor<4x3x7xf32>
    %3 = nn.matmul %2, %w2 : tensor<4x3x7xf32>, tensor<7x6xf32> -> tensor<4x3x6xf32>
    %4 = nn.add %3, %b2 : tensor<4x3x6xf32>, tensor<6xf32> -> tensor<4x3x6xf32>
    %5 = nn.add %x, %4 : tensor<4x3x6xf32>, tensor<4x3x6xf32> -> tensor<4x3x6xf32>
    return %5 : tensor<4x3x6xf32>
  }
}
