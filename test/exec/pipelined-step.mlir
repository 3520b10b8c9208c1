// A training step of four layers, of which the last is the first one transposed: y = tanh(tanh(tanh(x w1) w2 + b2) w3) w1^T, the error
// weighted, its mean over all weights, gradients, clipping by their norm, momentum. Cut into stages it needs everything that a
// pipeline has: activations that backward reads, gradients that go back, a parameter in two stages whose gradient has a term in
// each, a norm and a factor that all stages know. If a slot is one too few, a term is added twice or in one of the copies alone,
// an update runs before the last micro-batch has added to it, or what is computed again is not what it was, numbers differ.
module attributes {exec.steps = 3 : i64,
    exec.meshes = ["mb=1:time, dp=1:data, tp=1:tensor", "mb=1:time, dp=2:data, tp=2:tensor", "mb=2:time, dp=2:data, tp=1:tensor", "mb=3:time, dp=1:data, tp=2:tensor", "mb=6:time, dp=1:data, tp=1:tensor"],
    exec.pipelines = ["pp=1", "pp=1 schedule=1f1b", "pp=2", "pp=3 schedule=gpipe", "pp=2 split=1,3 schedule=zb-h1", "pp=4 schedule=zb-h1", "pp=2 chunks=2", "pp=1 chunks=3", "pp=1 recompute=full", "pp=2 recompute=full schedule=gpipe", "pp=2 chunks=2 recompute=full", "pp=2 split=1,3 schedule=zb-h1 recompute=full"]} {
  func.func @main(%x: tensor<6x5xf32> {nn.name = "x", dist.seed = #dist.sharding<"[6@(mb, dp), 5]">},
                  %t: tensor<6x5xf32> {nn.name = "labels", dist.seed = #dist.sharding<"[6@(mb, dp), 5]">},
                  %m1: tensor<5x7xf32> {nn.state = "momentum/w1", nn.initial = 0.0 : f64},
                  %m2: tensor<7x6xf32> {nn.state = "momentum/w2", nn.initial = 0.125 : f64, dist.seed = #dist.sharding<"[7@dp, 6]">},
                  %lr: tensor<f32> {nn.step_scalar = "lr"})
      -> (tensor<6x5xf32> {nn.name = "y"}, tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "valid_tokens"}, tensor<f32> {nn.name = "gradient_norm"},
          tensor<5x7xf32> {nn.name = "gradient of w1", nn.gradient = "w1"},
          tensor<5x7xf32> {nn.writes = "w1"}, tensor<7x6xf32> {nn.writes = "w2"}, tensor<6xf32> {nn.writes = "b2"}, tensor<6x7xf32> {nn.writes = "w3"},
          tensor<5x7xf32> {nn.writes = "momentum/w1"}, tensor<7x6xf32> {nn.writes = "momentum/w2"}) {
    %w1 = nn.parameter "w1" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.sharding<"[5, 7@tp]">} : tensor<5x7xf32> loc("w1")
    %w2 = nn.parameter "w2" stored <file = "w", bytes = 168, hashes = [0]> : tensor<7x6xf32> loc("w2")
    %b2 = nn.parameter "b2" stored <file = "w", bytes = 24, hashes = [0]> : tensor<6xf32> loc("b2")
    %w3 = nn.parameter "w3" stored <file = "w", bytes = 168, hashes = [0]> : tensor<6x7xf32> loc("w3")
    // forward
    %z1 = nn.matmul %x, %w1 : tensor<6x5xf32>, tensor<5x7xf32> -> tensor<6x7xf32> loc("l1")
    %h1 = nn.tanh %z1 : tensor<6x7xf32> -> tensor<6x7xf32> loc("act1")
    %p2 = nn.matmul %h1, %w2 : tensor<6x7xf32>, tensor<7x6xf32> -> tensor<6x6xf32> loc("l2")
    %z2 = nn.add %p2, %b2 : tensor<6x6xf32>, tensor<6xf32> -> tensor<6x6xf32> loc("bias2")
    %h2 = nn.tanh %z2 : tensor<6x6xf32> -> tensor<6x6xf32> loc("act2")
    %z3 = nn.matmul %h2, %w3 : tensor<6x6xf32>, tensor<6x7xf32> -> tensor<6x7xf32> loc("l3")
    %h3 = nn.tanh %z3 : tensor<6x7xf32> -> tensor<6x7xf32> loc("act3")
    %y = nn.matmul %h3, %w1 {transpose_rhs} : tensor<6x7xf32>, tensor<5x7xf32> -> tensor<6x5xf32> loc("out")
    %e = nn.sub %y, %t : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32> loc("loss")
    %weight = nn.mul %t, %t : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32> loc("loss")
    %d = nn.mul %e, %weight : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32> loc("loss")
    %de = nn.mul %d, %e : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32> loc("loss")
    %sums = nn.reduce sum %de {axes = array<i64: 0, 1>} : tensor<6x5xf32> -> tensor<1x1xf32> loc("loss")
    %sum = nn.reshape %sums : tensor<1x1xf32> -> tensor<f32> loc("loss")
    %counts = nn.reduce sum %weight {axes = array<i64: 0, 1>} : tensor<6x5xf32> -> tensor<1x1xf32> loc("loss")
    %count = nn.reshape %counts : tensor<1x1xf32> -> tensor<f32> loc("loss")
    %loss = nn.div %sum, %count : tensor<f32>, tensor<f32> -> tensor<f32> loc("loss")
    // backward, of the sum
    %dh3 = nn.matmul %d, %w1 : tensor<6x5xf32>, tensor<5x7xf32> -> tensor<6x7xf32> loc(fused<"gradient">["out"])
    %gb = nn.matmul %d, %h3 {transpose_lhs} : tensor<6x5xf32>, tensor<6x7xf32> -> tensor<5x7xf32> loc(fused<"gradient">["out"])
    %one = nn.constant dense<1.0> : tensor<f32> : tensor<f32> loc(fused<"gradient">["act3"])
    %hh3 = nn.mul %h3, %h3 : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32> loc(fused<"gradient">["act3"])
    %s3 = nn.sub %one, %hh3 : tensor<f32>, tensor<6x7xf32> -> tensor<6x7xf32> loc(fused<"gradient">["act3"])
    %dz3 = nn.mul %dh3, %s3 : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32> loc(fused<"gradient">["act3"])
    %gw3 = nn.matmul %h2, %dz3 {transpose_lhs} : tensor<6x6xf32>, tensor<6x7xf32> -> tensor<6x7xf32> loc(fused<"gradient">["l3"])
    %dh2 = nn.matmul %dz3, %w3 {transpose_rhs} : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x6xf32> loc(fused<"gradient">["l3"])
    %hh2 = nn.mul %h2, %h2 : tensor<6x6xf32>, tensor<6x6xf32> -> tensor<6x6xf32> loc(fused<"gradient">["act2"])
    %s2 = nn.sub %one, %hh2 : tensor<f32>, tensor<6x6xf32> -> tensor<6x6xf32> loc(fused<"gradient">["act2"])
    %dz2 = nn.mul %dh2, %s2 : tensor<6x6xf32>, tensor<6x6xf32> -> tensor<6x6xf32> loc(fused<"gradient">["act2"])
    %gb2s = nn.reduce sum %dz2 {axes = array<i64: 0>} : tensor<6x6xf32> -> tensor<1x6xf32> loc(fused<"gradient">["bias2"])
    %gb2 = nn.reshape %gb2s : tensor<1x6xf32> -> tensor<6xf32> loc(fused<"gradient">["bias2"])
    %gw2 = nn.matmul %h1, %dz2 {transpose_lhs} : tensor<6x7xf32>, tensor<6x6xf32> -> tensor<7x6xf32> loc(fused<"gradient">["l2"])
    %dh1 = nn.matmul %dz2, %w2 {transpose_rhs} : tensor<6x6xf32>, tensor<7x6xf32> -> tensor<6x7xf32> loc(fused<"gradient">["l2"])
    %hh1 = nn.mul %h1, %h1 : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32> loc(fused<"gradient">["act1"])
    %s1 = nn.sub %one, %hh1 : tensor<f32>, tensor<6x7xf32> -> tensor<6x7xf32> loc(fused<"gradient">["act1"])
    %dz1 = nn.mul %dh1, %s1 : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32> loc(fused<"gradient">["act1"])
    %ga = nn.matmul %x, %dz1 {transpose_lhs} : tensor<6x5xf32>, tensor<6x7xf32> -> tensor<5x7xf32> loc(fused<"gradient">["l1"])
    %gw1 = nn.add %gb, %ga : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32> loc(fused<"gradient">["w1"])
    %two = nn.constant dense<2.0> : tensor<f32> : tensor<f32> loc(fused<"gradient">["loss"])
    %factor = nn.div %two, %count : tensor<f32>, tensor<f32> -> tensor<f32> loc(fused<"gradient">["loss"])
    %gw1f = nn.mul %gw1, %factor : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32> loc(fused<"gradient">["w1"])
    %gw2f = nn.mul %gw2, %factor : tensor<7x6xf32>, tensor<f32> -> tensor<7x6xf32> loc(fused<"gradient">["w2"])
    %gb2f = nn.mul %gb2, %factor : tensor<6xf32>, tensor<f32> -> tensor<6xf32> loc(fused<"gradient">["b2"])
    %gw3f = nn.mul %gw3, %factor : tensor<6x7xf32>, tensor<f32> -> tensor<6x7xf32> loc(fused<"gradient">["w3"])
    // clip
    %qw1 = nn.mul %gw1f, %gw1f : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32> loc(fused<"update">["w1"])
    %nw1s = nn.reduce sum %qw1 {axes = array<i64: 0, 1>} : tensor<5x7xf32> -> tensor<1x1xf32> loc(fused<"update">["w1"])
    %nw1 = nn.reshape %nw1s : tensor<1x1xf32> -> tensor<f32> loc(fused<"update">["w1"])
    %qw2 = nn.mul %gw2f, %gw2f : tensor<7x6xf32>, tensor<7x6xf32> -> tensor<7x6xf32> loc(fused<"update">["w2"])
    %nw2s = nn.reduce sum %qw2 {axes = array<i64: 0, 1>} : tensor<7x6xf32> -> tensor<1x1xf32> loc(fused<"update">["w2"])
    %nw2 = nn.reshape %nw2s : tensor<1x1xf32> -> tensor<f32> loc(fused<"update">["w2"])
    %qb2 = nn.mul %gb2f, %gb2f : tensor<6xf32>, tensor<6xf32> -> tensor<6xf32> loc(fused<"update">["b2"])
    %nb2s = nn.reduce sum %qb2 {axes = array<i64: 0>} : tensor<6xf32> -> tensor<1xf32> loc(fused<"update">["b2"])
    %nb2 = nn.reshape %nb2s : tensor<1xf32> -> tensor<f32> loc(fused<"update">["b2"])
    %qw3 = nn.mul %gw3f, %gw3f : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32> loc(fused<"update">["w3"])
    %nw3s = nn.reduce sum %qw3 {axes = array<i64: 0, 1>} : tensor<6x7xf32> -> tensor<1x1xf32> loc(fused<"update">["w3"])
    %nw3 = nn.reshape %nw3s : tensor<1x1xf32> -> tensor<f32> loc(fused<"update">["w3"])
    %n12 = nn.add %nw1, %nw2 : tensor<f32>, tensor<f32> -> tensor<f32> loc(fused<"update">[""])
    %n123 = nn.add %n12, %nb2 : tensor<f32>, tensor<f32> -> tensor<f32> loc(fused<"update">[""])
    %n1234 = nn.add %n123, %nw3 : tensor<f32>, tensor<f32> -> tensor<f32> loc(fused<"update">[""])
    %norm = nn.sqrt %n1234 : tensor<f32> -> tensor<f32> loc(fused<"update">[""])
    %most = nn.constant dense<0.5> : tensor<f32> : tensor<f32> loc(fused<"update">[""])
    %ratio = nn.div %most, %norm : tensor<f32>, tensor<f32> -> tensor<f32> loc(fused<"update">[""])
    %whole = nn.constant dense<1.0> : tensor<f32> : tensor<f32> loc(fused<"update">[""])
    %clip = nn.min %whole, %ratio : tensor<f32>, tensor<f32> -> tensor<f32> loc(fused<"update">[""])
    // update: momentum for w1 and w2
    %mu = nn.constant dense<0.9> : tensor<f32> : tensor<f32> loc(fused<"update">[""])
    %cw1 = nn.mul %gw1f, %clip : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32> loc(fused<"update">["w1"])
    %kw1 = nn.mul %m1, %mu : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32> loc(fused<"update">["w1"])
    %vw1 = nn.add %kw1, %cw1 : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32> loc(fused<"update">["w1"])
    %uw1 = nn.mul %vw1, %lr : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32> loc(fused<"update">["w1"])
    %neww1 = nn.sub %w1, %uw1 : tensor<5x7xf32>, tensor<5x7xf32> -> tensor<5x7xf32> loc(fused<"update">["w1"])
    %cw2 = nn.mul %gw2f, %clip : tensor<7x6xf32>, tensor<f32> -> tensor<7x6xf32> loc(fused<"update">["w2"])
    %kw2 = nn.mul %m2, %mu : tensor<7x6xf32>, tensor<f32> -> tensor<7x6xf32> loc(fused<"update">["w2"])
    %vw2 = nn.add %kw2, %cw2 : tensor<7x6xf32>, tensor<7x6xf32> -> tensor<7x6xf32> loc(fused<"update">["w2"])
    %uw2 = nn.mul %vw2, %lr : tensor<7x6xf32>, tensor<f32> -> tensor<7x6xf32> loc(fused<"update">["w2"])
    %neww2 = nn.sub %w2, %uw2 : tensor<7x6xf32>, tensor<7x6xf32> -> tensor<7x6xf32> loc(fused<"update">["w2"])
    %cb2 = nn.mul %gb2f, %clip : tensor<6xf32>, tensor<f32> -> tensor<6xf32> loc(fused<"update">["b2"])
    %ub2 = nn.mul %cb2, %lr : tensor<6xf32>, tensor<f32> -> tensor<6xf32> loc(fused<"update">["b2"])
    %newb2 = nn.sub %b2, %ub2 : tensor<6xf32>, tensor<6xf32> -> tensor<6xf32> loc(fused<"update">["b2"])
    %cw3 = nn.mul %gw3f, %clip : tensor<6x7xf32>, tensor<f32> -> tensor<6x7xf32> loc(fused<"update">["w3"])
    %uw3 = nn.mul %cw3, %lr : tensor<6x7xf32>, tensor<f32> -> tensor<6x7xf32> loc(fused<"update">["w3"])
    %neww3 = nn.sub %w3, %uw3 : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32> loc(fused<"update">["w3"])
    return %y, %loss, %count, %norm, %gw1f, %neww1, %neww2, %newb2, %neww3, %vw1, %vw2 : tensor<6x5xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<7x6xf32>, tensor<6xf32>, tensor<6x7xf32>, tensor<5x7xf32>, tensor<7x6xf32>
  }
}
