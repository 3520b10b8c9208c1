// Norms whose own dim is cut unevenly: the mean divides by the true count, not by the box.
module attributes {exec.meshes = ["dp=1:data, tp=2:tensor", "dp=1:data, tp=4:tensor", "dp=2:data, tp=3:tensor"]} {
  func.func @main(%x: tensor<3x10xf32> {dist.seed = #dist.sharding<"[3@dp, 10@tp]">}) -> (tensor<3x10xf32>, tensor<3x10xf32>) {
    %g = nn.parameter "gain" stored <file = "w", bytes = 40, hashes = [0]> : tensor<10xf32>
    %b = nn.parameter "bias" stored <file = "w", bytes = 40, hashes = [0]> : tensor<10xf32>
    %0 = nn.layer_norm %x weight %g : tensor<10xf32> bias %b : tensor<10xf32> {epsilon = 1.0e-5} : tensor<3x10xf32> -> tensor<3x10xf32>
    %1 = nn.rms_norm %x weight %g : tensor<10xf32> {epsilon = 1.0e-6} : tensor<3x10xf32> -> tensor<3x10xf32>
    return %0, %1 : tensor<3x10xf32>, tensor<3x10xf32>
  }
}
