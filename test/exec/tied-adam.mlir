// A step written by hand of a tied autoencoder, y = tanh(x w) w^T: the two terms of w's gradient meet before they are accumulated,
// the second product sums over a cut dim whose padding is what the last update left in w, and Adam's states and w are stored cut
// over dp (5 rows), where the square of the gradient needs it complete. A term that is lost, added twice or scattered to the
// wrong rank changes numbers.
module attributes {exec.steps = 4 : i64, exec.meshes = ["mb=1:time, dp=1:data, tp=1:tensor", "mb=3:time, dp=1:data, tp=1:tensor", "mb=1:time, dp=3:data, tp=2:tensor",
    "mb=2:time, dp=2:data, tp=2:tensor", "mb=3:time, dp=2:data, tp=4:tensor"]} {
  func.func @main(%x: tensor<6x5xf32> {nn.name = "x", dist.seed = #dist.sharding<"[6@(mb, dp), 5]">},
                  %m: tensor<5x7xf32> {nn.state = "adam.m/w", nn.initial = 0.0 : f64, dist.seed = #dist.sharding<"[5@dp, 7@tp]">},
                  %v: tensor<5x7xf32> {nn.state = "adam.v/w", nn.initial = 0.25 : f64, dist.seed = #dist.sharding<"[5@dp, 7@tp]">},
                  %lr: tensor<f32> {nn.step_scalar = "lr"})
      -> (tensor<6x5xf32> {nn.name = "y"}, tensor<f32> {nn.name = "loss"}, tensor<5x7xf32> {nn.writes = "adam.v/w"}, tensor<5x7xf32> {nn.writes = "w"}, tensor<5x7xf32> {nn.writes = "adam.m/w"}) {
    %w = nn.parameter "w" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[5@dp, 7@tp]">} : tensor<5x7xf32>
    // forward
    %z = nn.matmul %x, %w : tensor<6x5xf32>, tensor<5x7xf32> -> tensor<6x7xf32>
    %h = nn.tanh %z : tensor<6x7xf32> -> tensor<6x7xf32>
    %y = nn.matmul %h, %w {transpose_rhs} : tensor<6x7xf32>, tensor<5x7xf32> -> tensor<6x5xf32>
    %e = nn.sub %y, %x : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    %e2 = nn.mul %e, %e : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    %sum = nn.reduce sum %e2 {axes = array<i64: 0, 1>} : tensor<6x5xf32> -> tensor<1x1xf32>
    %loss = nn.reshape %sum : tensor<1x1xf32> -> tensor<f32>
    // backward
    %one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
    %dh = nn.matmul %e, %w : tensor<6x5xf32>, tensor<5x7xf32> -> tensor<6x7xf32>
    %h2 = nn.mul %h, %h : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>
    %slope = nn.sub %one, %h2 : tensor<f32>, tensor<6x7xf32> -> tensor<6x7xf32>
    %dz = nn.mul %dh, %slope : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>
    %ga = nn.matmul %x, %dz {transpose_lhs} : tensor<6x5xf32>, tensor<6x7xf32> -> tensor<5x7xf32>
    %gb = nn.matmul %e, %h {transpose_lhs} : tensor<6x5xf32>, tensor<6x7xf32> -> tensor<5x7xf32>
    %g = nn.add %ga, %gb : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32>
    // update
    %mu = nn.constant dense<0.9> : tensor<f32> : tensor<f32>
    %nu = nn.constant dense<0.75> : tensor<f32> : tensor<f32>
    %rest = nn.constant dense<0.25> : tensor<f32> : tensor<f32>
    %mk = nn.mul %m, %mu : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32>
    %m1 = nn.add %mk, %g : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32>
    %g2 = nn.mul %g, %g : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32>
    %vk = nn.mul %v, %nu : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32>
    %vn = nn.mul %g2, %rest : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32>
    %v1 = nn.add %vk, %vn : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32>
    %root = nn.sqrt %v1 : tensor<5x7xf32> -> tensor<5x7xf32>
    %ratio = nn.div %m1, %root : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32>
    %step = nn.mul %ratio, %lr : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32>
    %w1 = nn.sub %w, %step : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32>
    return %y, %loss, %v1, %w1, %m1 : tensor<6x5xf32>, tensor<f32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>
  }
}
