// Steps of two products in the layout 3d, written by hand: y and z take turns as columns and as rows inside of x, weights are stored in pieces of their part over x. Nothing
// divides evenly, so ranks without rows, with padding in a sum over a cut dim, and with empty pieces of a weight change numbers if they count.
module attributes {exec.steps = 3 : i64, exec.meshes = ["tp.x=1:data, tp.y=1:tensor, tp.z=1:tensor", "tp.x=2:data, tp.y=2:tensor, tp.z=2:tensor", "tp.x=3:data, tp.y=2:tensor, tp.z=3:tensor",
    "tp.x=1:data, tp.y=3:tensor, tp.z=2:tensor", "tp.x=2:data, tp.y=1:tensor, tp.z=4:tensor"]} {
  func.func @main(%x: tensor<7x5xf32> {nn.name = "x", dist.seed = #dist.sharding<"[7@tp.x, 5]">}, %lr: tensor<f32> {nn.step_scalar = "lr"})
      -> (tensor<7x5xf32> {nn.name = "r"}, tensor<5x6xf32> {nn.writes = "up"}, tensor<6x5xf32> {nn.writes = "down"}) {
    %up = nn.parameter "up" stored <file = "w", bytes = 120, hashes = [0]> {dist.seed = #dist.sharding<"[5@(tp.z, tp.x), 6@tp.y]">} : tensor<5x6xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 120, hashes = [0]> {dist.seed = #dist.sharding<"[6@(tp.y, tp.x), 5@tp.z]">} : tensor<6x5xf32>
    %one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
    %n = nn.tanh %x {dist.seed = #dist.sharding<"[7@(tp.x, tp.y), 5@tp.z]">} : tensor<7x5xf32> -> tensor<7x5xf32>
    %u = nn.matmul %n, %up {dist.seed = #dist.sharding<"[7@tp.x, 6@tp.y]">, dist.read_seed = #dist.seed<"[7@(tp.x, tp.z), 6?]">} : tensor<7x5xf32>, tensor<5x6xf32> -> tensor<7x6xf32>
    %g = nn.tanh %u {dist.seed = #dist.sharding<"[7@(tp.x, tp.z), 6@tp.y]">} : tensor<7x6xf32> -> tensor<7x6xf32>
    %d = nn.matmul %g, %down {dist.seed = #dist.sharding<"[7@tp.x, 5@tp.z]">, dist.read_seed = #dist.seed<"[7@(tp.x, tp.y), 5?]">} : tensor<7x6xf32>, tensor<6x5xf32> -> tensor<7x5xf32>
    %r = nn.add %n, %d {dist.seed = #dist.sharding<"[7@(tp.x, tp.y), 5@tp.z]">} : tensor<7x5xf32>, tensor<7x5xf32> -> tensor<7x5xf32>
    %ddown = nn.matmul %g, %r {transpose_lhs} : tensor<7x6xf32>, tensor<7x5xf32> -> tensor<6x5xf32>
    %dg = nn.matmul %r, %down {transpose_rhs, dist.seed = #dist.sharding<"[7@tp.x, 6@tp.y]">, dist.read_seed = #dist.seed<"[7@(tp.x, tp.z), 6?]">} : tensor<7x5xf32>, tensor<6x5xf32> -> tensor<7x6xf32>
    %gg = nn.mul %g, %g : tensor<7x6xf32>, tensor<7x6xf32> -> tensor<7x6xf32>
    %slope = nn.sub %one, %gg : tensor<f32>, tensor<7x6xf32> -> tensor<7x6xf32>
    %du = nn.mul %dg, %slope : tensor<7x6xf32>, tensor<7x6xf32> -> tensor<7x6xf32>
    %dup = nn.matmul %n, %du {transpose_lhs} : tensor<7x5xf32>, tensor<7x6xf32> -> tensor<5x6xf32>
    %su = nn.mul %dup, %lr : tensor<5x6xf32>, tensor<f32> -> tensor<5x6xf32>
    %sd = nn.mul %ddown, %lr : tensor<6x5xf32>, tensor<f32> -> tensor<6x5xf32>
    %newUp = nn.sub %up, %su : tensor<5x6xf32>, tensor<5x6xf32> -> tensor<5x6xf32>
    %newDown = nn.sub %down, %sd : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    return %r, %newUp, %newDown : tensor<7x5xf32>, tensor<5x6xf32>, tensor<6x5xf32>
  }
}
