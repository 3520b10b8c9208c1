// RUN: hpc-opt %s --hpc-verify-annotated --split-input-file -verify-diagnostics

// expected-error @below {{module has no dist.mesh; run hpc-build-mesh}}
module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// A seed must be a sharding of its tensor: sizes whose product is the dim, axes of the mesh.
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
    // expected-error @below {{seed '[(2@tp, 4)]' of 'tensor<6xf32>'}}
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6xf32>, dist.seed = #dist.sharding<"[(2@tp, 4)]">} : tensor<6xf32>
    %y = nn.add %x, %w : tensor<6xf32>, tensor<6xf32> -> tensor<6xf32>
    return %y : tensor<6xf32>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  // expected-error @below {{seed '[6@pp]' of 'tensor<6xf32>'}}
  func.func @main(%x: tensor<6xf32> {dist.seed = #dist.sharding<"[6@pp]">}) -> tensor<6xf32> {
    return %x : tensor<6xf32>
  }
}

// -----

// Types get their sharding in the next phase.
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<6xf32>) -> tensor<6xf32, #dist.sharding<"[6@tp]">> {
    // expected-error @below {{carries a sharding before propagation}}
    %y = nn.exp %x : tensor<6xf32> -> tensor<6xf32, #dist.sharding<"[6@tp]">>
    return %y : tensor<6xf32, #dist.sharding<"[6@tp]">>
  }
}

// -----

// What is no seed is named, not ignored.
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  // expected-error @below {{'dist.seed' has to be a seed, as #dist.seed<"[4@dp, 33?]">, or a list with one for each result, and is 3 : i64}}
  func.func @main(%x: tensor<6xf32> {dist.seed = 3 : i64}) -> tensor<6xf32> {
    return %x : tensor<6xf32>
  }
}

// -----

// A result that writes nothing which exists would be lost.
module attributes {dist.mesh = #dist.mesh<"mb=1:time">} {
  // expected-error @below {{[model] result 0 writes 'w', which is neither a parameter nor a state}}
  func.func @main(%x: tensor<6xf32>) -> (tensor<6xf32> {nn.writes = "w"}) {
    return %x : tensor<6xf32>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"mb=1:time">} {
  // expected-error @below {{[model] result 0 of type 'tensor<6xf32>' writes 'm' of type 'tensor<5xf32>'; they must be equal}}
  func.func @main(%x: tensor<6xf32>, %m: tensor<5xf32> {nn.state = "m"}) -> (tensor<6xf32> {nn.writes = "m"}) {
    return %x : tensor<6xf32>
  }
}

// -----

// Two values for one buffer.
module attributes {dist.mesh = #dist.mesh<"mb=1:time">} {
  // expected-error @below {{[model] 'm' is written twice, at last by result 1}}
  func.func @main(%x: tensor<6xf32>, %m: tensor<6xf32> {nn.state = "m"}) -> (tensor<6xf32> {nn.writes = "m"}, tensor<6xf32> {nn.writes = "m"}) {
    return %x, %m : tensor<6xf32>, tensor<6xf32>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"mb=1:time">} {
  // expected-error @below {{[model] state 'm' is an argument twice; give each state a name of its own}}
  func.func @main(%l: tensor<6xf32> {nn.state = "m"}, %m: tensor<6xf32> {nn.state = "m"}) -> tensor<6xf32> {
    return %m : tensor<6xf32>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"mb=1:time">} {
  // expected-error @below {{[model] step scalar 'lr' of type 'tensor<1xf32>' must have rank 0 and be no state}}
  func.func @main(%lr: tensor<1xf32> {nn.step_scalar = "lr"}) -> tensor<1xf32> {
    return %lr : tensor<1xf32>
  }
}
