// A step written by hand: a linear layer with a bias, the squared error, its gradients, momentum for the weight and SGD. Four
// steps: what the first three write shows in what the next ones return. The weight and its momentum are stored cut over dp (5 rows over 2 ranks: 3 and 2) and used whole; gradients are
// sums over micro-batches and ranks. If a micro-batch or a rank is counted twice or not at all, if a step reads what another one
// should have written, or if padding of a written parameter is trusted, numbers differ.
module attributes {exec.steps = 4 : i64, exec.meshes = ["mb=1:time, dp=1:data, tp=1:tensor", "mb=2:time, dp=1:data, tp=1:tensor", "mb=1:time, dp=2:data, tp=1:tensor",
    "mb=1:time, dp=1:data, tp=2:tensor", "mb=2:time, dp=2:data, tp=1:tensor", "mb=3:time, dp=1:data, tp=3:tensor", "mb=2:time, dp=2:data, tp=2:tensor", "mb=2:time, dp=4:data, tp=2:tensor"]} {
  func.func @main(%x: tensor<6x5xf32> {nn.name = "x", dist.seed = #dist.sharding<"[6@(mb, dp), 5]">},
                  %t: tensor<6x7xf32> {nn.name = "t", dist.seed = #dist.sharding<"[6@(mb, dp), 7]">},
                  %m: tensor<5x7xf32> {nn.state = "momentum/w", nn.initial = 0.0 : f64, dist.seed = #dist.sharding<"[5@dp, 7@tp]">},
                  %lr: tensor<f32> {nn.step_scalar = "lr"})
      -> (tensor<f32> {nn.name = "loss"}, tensor<6x7xf32> {nn.name = "y"}, tensor<5x7xf32> {nn.writes = "w"}, tensor<7xf32> {nn.writes = "b"}, tensor<5x7xf32> {nn.writes = "momentum/w"}) {
    %w = nn.parameter "w" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[5@dp, 7@tp]">} : tensor<5x7xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 28, hashes = [0]> : tensor<7xf32>
    // forward: the mean of the squared errors
    %xw = nn.matmul %x, %w : tensor<6x5xf32>, tensor<5x7xf32> -> tensor<6x7xf32>
    %y = nn.add %xw, %b : tensor<6x7xf32>, tensor<7xf32> -> tensor<6x7xf32>
    %e = nn.sub %y, %t : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>
    %e2 = nn.mul %e, %e : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>
    %sum = nn.reduce sum %e2 {axes = array<i64: 0, 1>} : tensor<6x7xf32> -> tensor<1x1xf32>
    %total = nn.reshape %sum : tensor<1x1xf32> -> tensor<f32>
    %mean = nn.constant dense<0.0238095243> : tensor<f32> : tensor<f32>
    %loss = nn.mul %total, %mean : tensor<f32>, tensor<f32> -> tensor<f32>
    // backward: the gradient of y without the factor 2/42, which the update multiplies in
    %dw = nn.matmul %x, %e {transpose_lhs} : tensor<6x5xf32>, tensor<6x7xf32> -> tensor<5x7xf32>
    %dbs = nn.reduce sum %e {axes = array<i64: 0>} : tensor<6x7xf32> -> tensor<1x7xf32>
    %db = nn.reshape %dbs : tensor<1x7xf32> -> tensor<7xf32>
    // update
    %factor = nn.constant dense<0.0476190485> : tensor<f32> : tensor<f32>
    %mu = nn.constant dense<0.9> : tensor<f32> : tensor<f32>
    %g = nn.mul %dw, %factor : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32>
    %kept = nn.mul %m, %mu : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32>
    %m1 = nn.add %kept, %g : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32>
    %step = nn.mul %m1, %lr : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32>
    %w1 = nn.sub %w, %step : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32>
    %gb = nn.mul %db, %factor : tensor<7xf32>, tensor<f32> -> tensor<7xf32>
    %stepb = nn.mul %gb, %lr : tensor<7xf32>, tensor<f32> -> tensor<7xf32>
    %b1 = nn.sub %b, %stepb : tensor<7xf32>, tensor<7xf32> -> tensor<7xf32>
    return %loss, %y, %w1, %b1, %m1 : tensor<f32>, tensor<6x7xf32>, tensor<5x7xf32>, tensor<7xf32>, tensor<5x7xf32>
  }
}
