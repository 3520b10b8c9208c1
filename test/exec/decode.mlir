// Steps of decoding: two layers of attention read keys and values of all steps so far from states, of which a step writes two rows, at a position that the step gives; the row
// that is returned is given, too. If rows are written elsewhere, if attention reads the state before they are there, or keys beyond the
// position, or if a cache is copied to where the next step does not look, numbers differ.
module attributes {exec.steps = 4 : i64, exec.meshes = ["mb=1:time, dp=1:data, tp=1:tensor", "mb=1:time, dp=2:data, tp=1:tensor", "mb=1:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=3:data, tp=3:tensor"],
    exec.pipelines = ["pp=1", "pp=2"]} {
  func.func @main(%x: tensor<4x2x12xf32> {nn.name = "x", dist.seed = #dist.sharding<"[4@dp, 2, 12]">}, %position: tensor<i64> {nn.step_scalar = "position", nn.largest = 6 : i64},
                  %row: tensor<i64> {nn.step_scalar = "row", nn.largest = 1 : i64},
                  %k0: tensor<4x3x8x8xf32> {nn.state = "cache/k0", nn.initial = 0.0 : f64, dist.seed = #dist.sharding<"[4@dp, 3@tp, 8, 8]">},
                  %v0: tensor<4x3x8x8xf32> {nn.state = "cache/v0", nn.initial = 0.0 : f64, dist.seed = #dist.sharding<"[4@dp, 3@tp, 8, 8]">},
                  %k1: tensor<4x3x8x8xf32> {nn.state = "cache/k1", nn.initial = 0.0 : f64, dist.seed = #dist.sharding<"[4@dp, 3@tp, 8, 8]">},
                  %v1: tensor<4x3x8x8xf32> {nn.state = "cache/v1", nn.initial = 0.0 : f64, dist.seed = #dist.sharding<"[4@dp, 3@tp, 8, 8]">})
      -> (tensor<4x12xf32> {nn.name = "y"}, tensor<4x3x8x8xf32> {nn.writes = "cache/k0"}, tensor<4x3x8x8xf32> {nn.writes = "cache/v0"}, tensor<4x3x8x8xf32> {nn.writes = "cache/k1"}, tensor<4x3x8x8xf32> {nn.writes = "cache/v1"}) {
    %wq0 = nn.parameter "wq0" stored <file = "w", bytes = 2304, hashes = [0]> : tensor<12x48xf32> loc("wq0")
    %q0p = nn.matmul %x, %wq0 : tensor<4x2x12xf32>, tensor<12x48xf32> -> tensor<4x2x48xf32> loc("l0")
    %q0r = nn.reshape %q0p : tensor<4x2x48xf32> -> tensor<4x2x6x8xf32> loc("l0")
    %q0t = nn.transpose %q0r {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x2x6x8xf32> -> tensor<4x6x2x8xf32> loc("l0")
    %wk0 = nn.parameter "wk0" stored <file = "w", bytes = 1152, hashes = [0]> : tensor<12x24xf32> loc("wk0")
    %k0p = nn.matmul %x, %wk0 : tensor<4x2x12xf32>, tensor<12x24xf32> -> tensor<4x2x24xf32> loc("l0")
    %k0r = nn.reshape %k0p : tensor<4x2x24xf32> -> tensor<4x2x3x8xf32> loc("l0")
    %k0t = nn.transpose %k0r {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x2x3x8xf32> -> tensor<4x3x2x8xf32> loc("l0")
    %wv0 = nn.parameter "wv0" stored <file = "w", bytes = 1152, hashes = [0]> : tensor<12x24xf32> loc("wv0")
    %v0p = nn.matmul %x, %wv0 : tensor<4x2x12xf32>, tensor<12x24xf32> -> tensor<4x2x24xf32> loc("l0")
    %v0r = nn.reshape %v0p : tensor<4x2x24xf32> -> tensor<4x2x3x8xf32> loc("l0")
    %v0t = nn.transpose %v0r {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x2x3x8xf32> -> tensor<4x3x2x8xf32> loc("l0")
    %k0n = nn.update_slice %k0, %k0t, %position {dim = 2 : i64} : tensor<4x3x8x8xf32>, tensor<4x3x2x8xf32>, tensor<i64> -> tensor<4x3x8x8xf32> loc("l0")
    %v0n = nn.update_slice %v0, %v0t, %position {dim = 2 : i64} : tensor<4x3x8x8xf32>, tensor<4x3x2x8xf32>, tensor<i64> -> tensor<4x3x8x8xf32> loc("l0")
    %a0 = nn.attention %q0t, %k0n, %v0n query_start %position : tensor<i64> {scale = 0.35 : f64, causal_offset = 0 : i64} : tensor<4x6x2x8xf32>, tensor<4x3x8x8xf32>, tensor<4x3x8x8xf32> -> tensor<4x6x2x8xf32> loc("l0")
    %a0t = nn.transpose %a0 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x6x2x8xf32> -> tensor<4x2x6x8xf32> loc("l0")
    %a0r = nn.reshape %a0t : tensor<4x2x6x8xf32> -> tensor<4x2x48xf32> loc("l0")
    %wo0 = nn.parameter "wo0" stored <file = "w", bytes = 2304, hashes = [0]> : tensor<48x12xf32> loc("wo0")
    %o0 = nn.matmul %a0r, %wo0 : tensor<4x2x48xf32>, tensor<48x12xf32> -> tensor<4x2x12xf32> loc("l0")
    %s0 = nn.add %x, %o0 : tensor<4x2x12xf32>, tensor<4x2x12xf32> -> tensor<4x2x12xf32> loc("l0")
    %h0 = nn.tanh %s0 : tensor<4x2x12xf32> -> tensor<4x2x12xf32> loc("l0")
    %wq1 = nn.parameter "wq1" stored <file = "w", bytes = 2304, hashes = [0]> : tensor<12x48xf32> loc("wq1")
    %q1p = nn.matmul %h0, %wq1 : tensor<4x2x12xf32>, tensor<12x48xf32> -> tensor<4x2x48xf32> loc("l1")
    %q1r = nn.reshape %q1p : tensor<4x2x48xf32> -> tensor<4x2x6x8xf32> loc("l1")
    %q1t = nn.transpose %q1r {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x2x6x8xf32> -> tensor<4x6x2x8xf32> loc("l1")
    %wk1 = nn.parameter "wk1" stored <file = "w", bytes = 1152, hashes = [0]> : tensor<12x24xf32> loc("wk1")
    %k1p = nn.matmul %h0, %wk1 : tensor<4x2x12xf32>, tensor<12x24xf32> -> tensor<4x2x24xf32> loc("l1")
    %k1r = nn.reshape %k1p : tensor<4x2x24xf32> -> tensor<4x2x3x8xf32> loc("l1")
    %k1t = nn.transpose %k1r {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x2x3x8xf32> -> tensor<4x3x2x8xf32> loc("l1")
    %wv1 = nn.parameter "wv1" stored <file = "w", bytes = 1152, hashes = [0]> : tensor<12x24xf32> loc("wv1")
    %v1p = nn.matmul %h0, %wv1 : tensor<4x2x12xf32>, tensor<12x24xf32> -> tensor<4x2x24xf32> loc("l1")
    %v1r = nn.reshape %v1p : tensor<4x2x24xf32> -> tensor<4x2x3x8xf32> loc("l1")
    %v1t = nn.transpose %v1r {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x2x3x8xf32> -> tensor<4x3x2x8xf32> loc("l1")
    %k1n = nn.update_slice %k1, %k1t, %position {dim = 2 : i64} : tensor<4x3x8x8xf32>, tensor<4x3x2x8xf32>, tensor<i64> -> tensor<4x3x8x8xf32> loc("l1")
    %v1n = nn.update_slice %v1, %v1t, %position {dim = 2 : i64} : tensor<4x3x8x8xf32>, tensor<4x3x2x8xf32>, tensor<i64> -> tensor<4x3x8x8xf32> loc("l1")
    %a1 = nn.attention %q1t, %k1n, %v1n query_start %position : tensor<i64> {scale = 0.35 : f64, causal_offset = 0 : i64} : tensor<4x6x2x8xf32>, tensor<4x3x8x8xf32>, tensor<4x3x8x8xf32> -> tensor<4x6x2x8xf32> loc("l1")
    %a1t = nn.transpose %a1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x6x2x8xf32> -> tensor<4x2x6x8xf32> loc("l1")
    %a1r = nn.reshape %a1t : tensor<4x2x6x8xf32> -> tensor<4x2x48xf32> loc("l1")
    %wo1 = nn.parameter "wo1" stored <file = "w", bytes = 2304, hashes = [0]> : tensor<48x12xf32> loc("wo1")
    %o1 = nn.matmul %a1r, %wo1 : tensor<4x2x48xf32>, tensor<48x12xf32> -> tensor<4x2x12xf32> loc("l1")
    %s1 = nn.add %h0, %o1 : tensor<4x2x12xf32>, tensor<4x2x12xf32> -> tensor<4x2x12xf32> loc("l1")
    %h1 = nn.tanh %s1 : tensor<4x2x12xf32> -> tensor<4x2x12xf32> loc("l1")
    %y = nn.gather %h1, %row {axis = 1 : i64} : tensor<4x2x12xf32>, tensor<i64> -> tensor<4x12xf32> loc("last")
    return %y, %k0n, %v0n, %k1n, %v1n : tensor<4x12xf32>, tensor<4x3x8x8xf32>, tensor<4x3x8x8xf32>, tensor<4x3x8x8xf32>, tensor<4x3x8x8xf32>
  }
}
