// Rows in another order than that of the program, whose positions are an operand: it is cut as the rows are, evenly or not, over ranks and over time, and needs no
// offset. A mask or a draw that counts rows of a box, or adds a rank's offset to a position, gives other numbers.
module attributes {exec.meshes = ["mb=1:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=3:tensor", "mb=1:time, dp=2:data, tp=2:tensor", "mb=3:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=9:tensor"]} {
  func.func @main(%q: tensor<3x3x7x2xf32> {dist.seed = #dist.sharding<"[3, 3, 7@(mb, tp), 2]">}, %p: tensor<3x3x7x2xf32> {dist.seed = #dist.sharding<"[3@dp, 3, 7@(mb, tp), 2]">},
                  %k: tensor<3x1x7x2xf32>, %v: tensor<3x1x7x5xf32>, %g: tensor<3x3x7x5xf32>, %h: tensor<3x3x7x5xf32>, %x: tensor<3x7x4xf32> {dist.seed = #dist.sharding<"[3@dp, 7@(mb, tp), 4]">},
                  %start: tensor<i64>, %step: tensor<f64> {nn.step_scalar = "step"}, %seed: tensor<f64> {nn.step_scalar = "seed"})
      -> (tensor<3x3x7x5xf32>, tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>, tensor<3x3x7x5xf32>, tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>, tensor<3x7x4xf32>) {
    %places = nn.constant dense<[0, 6, 1, 5, 2, 4, 3]> : tensor<7xi64> : tensor<7xi64>
    %each = nn.constant dense<[[0, 6, 1, 5, 2, 4, 3], [3, 0, 0, 1, 9, 2, 5], [1, 2, 3, 4, 5, 6, 0]]> : tensor<3x7xi32> : tensor<3x7xi32>
    %0 = nn.attention %p, %k, %v query_start %start : tensor<i64> query_positions %each : tensor<3x7xi32> {scale = 0.7 : f64, causal_offset = 0 : i64}
        : tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32> -> tensor<3x3x7x5xf32>
    %1:3 = nn.attention_grad %p, %k, %v, %g query_start %start : tensor<i64> query_positions %each : tensor<3x7xi32> {scale = 0.7 : f64, causal_offset = 0 : i64}
        : tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>, tensor<3x3x7x5xf32> -> tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>
    %2 = nn.attention %q, %k, %v dropout %step, %seed : tensor<f64>, tensor<f64> query_positions %places : tensor<7xi64>
        {scale = 0.7 : f64, causal_offset = 1 : i64, guarded, site = 2 : i64, rate = 0.3 : f64} : tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32> -> tensor<3x3x7x5xf32>
    %3:3 = nn.attention_grad %q, %k, %v, %h dropout %step, %seed : tensor<f64>, tensor<f64> query_positions %places : tensor<7xi64>
        {scale = 0.7 : f64, causal_offset = 1 : i64, guarded, site = 2 : i64, rate = 0.3 : f64}
        : tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>, tensor<3x3x7x5xf32> -> tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>
    %4 = nn.dropout %x, %step, %seed offsets %places : tensor<7xi64> {site = 3 : i64, rate = 0.3 : f64, offset_dims = array<i64: 1>} : tensor<3x7x4xf32>, tensor<f64>, tensor<f64> -> tensor<3x7x4xf32>
    return %0, %1#0, %1#1, %1#2, %2, %3#0, %3#1, %3#2, %4 : tensor<3x3x7x5xf32>, tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>, tensor<3x3x7x5xf32>, tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>, tensor<3x7x4xf32>
  }
}
