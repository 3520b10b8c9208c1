// ColoTensor's layout of the same product: 12 columns in two plain halves do not nest with (3, 2, 2); the split needs a gather.
module attributes {exec.meshes = ["tp=2:tensor", "tp=4:tensor", "tp=5:tensor"]} {
  func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 192, hashes = [0]> {dist.seed = #dist.sharding<"[4, 12@tp]">} : tensor<4x12xf32>
    %0 = nn.matmul %x, %w : tensor<3x4xf32>, tensor<4x12xf32> -> tensor<3x12xf32>
    %a = nn.slice %0 {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<3x12xf32> -> tensor<3x4xf32>
    %b = nn.slice %0 {starts = array<i64: 0, 4>, steps = array<i64: 1, 1>} : tensor<3x12xf32> -> tensor<3x4xf32>
    %c = nn.slice %0 {starts = array<i64: 0, 8>, steps = array<i64: 1, 1>} : tensor<3x12xf32> -> tensor<3x4xf32>
    %1 = nn.mul %a, %b : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %2 = nn.sub %1, %c : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    return %2 : tensor<3x4xf32>
  }
}
