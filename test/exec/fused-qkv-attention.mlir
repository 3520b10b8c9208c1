// GPT-2's attention with one weight for q, k and v: 5 heads of 4 over tp. The cut of the heads goes back through split, reshape
// and transpose; a plain cut of the 60 columns would give a rank half of k.
module attributes {exec.meshes = ["mb=1:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=3:tensor", "mb=1:time, dp=1:data, tp=7:tensor", "mb=2:time, dp=1:data, tp=2:tensor"]} {
  func.func @main(%x: tensor<2x3x20xf32> {dist.seed = #dist.sharding<"[2@(mb, dp), 3, 20]">}) -> tensor<2x3x20xf32> {
    %w = nn.parameter "c_attn.weight" stored <file = "w", bytes = 4800, hashes = [0]> {dist.seed = #dist.sharding<"[20, (3, 5@tp, 4)]">} : tensor<20x60xf32>
    %b = nn.parameter "c_attn.bias" stored <file = "w", bytes = 240, hashes = [0]> : tensor<60xf32>
    %p = nn.parameter "c_proj.weight" stored <file = "w", bytes = 1600, hashes = [0]> : tensor<20x20xf32>
    %c = nn.parameter "c_proj.bias" stored <file = "w", bytes = 80, hashes = [0]> : tensor<20xf32>
    %0 = nn.matmul %x, %w : tensor<2x3x20xf32>, tensor<20x60xf32> -> tensor<2x3x60xf32>
    %1 = nn.add %0, %b : tensor<2x3x60xf32>, tensor<60xf32> -> tensor<2x3x60xf32>
    %q0 = nn.slice %1 {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x3x60xf32> -> tensor<2x3x20xf32>
    %k0 = nn.slice %1 {starts = array<i64: 0, 0, 20>, steps = array<i64: 1, 1, 1>} : tensor<2x3x60xf32> -> tensor<2x3x20xf32>
    %v0 = nn.slice %1 {starts = array<i64: 0, 0, 40>, steps = array<i64: 1, 1, 1>} : tensor<2x3x60xf32> -> tensor<2x3x20xf32>
    %q1 = nn.reshape %q0 : tensor<2x3x20xf32> -> tensor<2x3x5x4xf32>
    %k1 = nn.reshape %k0 : tensor<2x3x20xf32> -> tensor<2x3x5x4xf32>
    %v1 = nn.reshape %v0 : tensor<2x3x20xf32> -> tensor<2x3x5x4xf32>
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x3x5x4xf32> -> tensor<2x5x3x4xf32>
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x3x5x4xf32> -> tensor<2x5x3x4xf32>
    %v = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x3x5x4xf32> -> tensor<2x5x3x4xf32>
    %a = nn.attention %q, %k, %v {scale = 0.5, causal_offset = 0 : i64} : tensor<2x5x3x4xf32>, tensor<2x5x3x4xf32>, tensor<2x5x3x4xf32> -> tensor<2x5x3x4xf32>
    %a1 = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x5x3x4xf32> -> tensor<2x3x5x4xf32>
    %a2 = nn.reshape %a1 : tensor<2x3x5x4xf32> -> tensor<2x3x20xf32>
    %2 = nn.matmul %a2, %p : tensor<2x3x20xf32>, tensor<20x20xf32> -> tensor<2x3x20xf32>
    %3 = nn.add %2, %c : tensor<2x3x20xf32>, tensor<20xf32> -> tensor<2x3x20xf32>
    %4 = nn.add %3, %x : tensor<2x3x20xf32>, tensor<2x3x20xf32> -> tensor<2x3x20xf32>
    return %4 : tensor<2x3x20xf32>
  }
}
