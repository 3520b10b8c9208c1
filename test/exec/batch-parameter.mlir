// A parameter with a batch dim, and a table that all rows of the batch share: each micro-batch takes its rows of what every rank
// holds whole, whatever else cuts them.
module attributes {exec.meshes = ["mb=2:time, dp=1:data, tp=1:tensor", "mb=2:time, dp=2:data, tp=2:tensor", "mb=4:time, dp=1:data, tp=3:tensor",
                                  "mb=2:time, dp=3:data, tp=2:tensor"]} {
  func.func @main(%x: tensor<4x6xf32> {dist.seed = #dist.sharding<"[4@(mb, dp), 6@tp]">}) -> tensor<4x6xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 96, hashes = [0]> : tensor<4x6xf32>
    %v = nn.parameter "v" stored <file = "w", bytes = 16, hashes = [0]> : tensor<4x1xf32>
    %scaled = nn.mul %x, %w : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
    %moved = nn.add %scaled, %v : tensor<4x6xf32>, tensor<4x1xf32> -> tensor<4x6xf32>
    %again = nn.sub %moved, %w : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
    return %again : tensor<4x6xf32>
  }
}
