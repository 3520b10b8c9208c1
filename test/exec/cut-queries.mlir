// Queries are cut, evenly or not, over ranks and over time, while keys are whole: what a query sees and drops follows from its position in the whole sequence, and the gradients of keys and
// values are sums over ranks. A mask that begins anew in a box, a position that loses what the program adds to it, or padding that is summed gives other numbers.
module attributes {exec.meshes = ["mb=1:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=3:tensor", "mb=1:time, dp=2:data, tp=2:tensor", "mb=3:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=9:tensor"]} {
  func.func @main(%q: tensor<3x3x7x2xf32> {dist.seed = #dist.sharding<"[3, 3, 7@(mb, tp), 2]">}, %p: tensor<3x3x7x2xf32> {dist.seed = #dist.sharding<"[3, 3, 7@(mb, dp, tp), 2]">},
                  %k: tensor<3x1x7x2xf32>, %v: tensor<3x1x7x5xf32>, %g: tensor<3x3x7x5xf32>, %h: tensor<3x3x7x5xf32>, %bias: tensor<1x3x7x7xf32>, %visible: tensor<3x1x7x7xi1>,
                  %start: tensor<i64>, %other: tensor<i64>, %step: tensor<f64> {nn.step_scalar = "step"}, %seed: tensor<f64> {nn.step_scalar = "seed"})
      -> (tensor<3x3x7x5xf32>, tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>, tensor<3x3x7x5xf32>, tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>) {
    %0 = nn.attention %q, %k, %v {scale = 0.7 : f64, causal_offset = 0 : i64} : tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32> -> tensor<3x3x7x5xf32>
    %1:3 = nn.attention_grad %q, %k, %v, %g {scale = 0.7 : f64, causal_offset = 0 : i64} : tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>, tensor<3x3x7x5xf32>
        -> tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>
    %2 = nn.attention %p, %k, %v bias %bias : tensor<1x3x7x7xf32> visible %visible : tensor<3x1x7x7xi1> dropout %step, %seed : tensor<f64>, tensor<f64>
        query_start %start : tensor<i64> key_start %other : tensor<i64> {scale = 0.7 : f64, causal_offset = 1 : i64, guarded, site = 2 : i64, rate = 0.3 : f64}
        : tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32> -> tensor<3x3x7x5xf32>
    %3:3 = nn.attention_grad %p, %k, %v, %h bias %bias : tensor<1x3x7x7xf32> visible %visible : tensor<3x1x7x7xi1> dropout %step, %seed : tensor<f64>, tensor<f64>
        query_start %start : tensor<i64> key_start %other : tensor<i64> {scale = 0.7 : f64, causal_offset = 1 : i64, guarded, site = 2 : i64, rate = 0.3 : f64}
        : tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>, tensor<3x3x7x5xf32> -> tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>
    return %0, %1#0, %1#1, %1#2, %2, %3#0, %3#1, %3#2 : tensor<3x3x7x5xf32>, tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>, tensor<3x3x7x5xf32>, tensor<3x3x7x2xf32>, tensor<3x1x7x2xf32>, tensor<3x1x7x5xf32>
  }
}
