// RUN: hpc-opt %s -split-input-file --hpc-verify-recomputed -verify-diagnostics

// A mark that stays would tell equal kernels of different layers apart.
module attributes {dist.mesh = #dist.mesh<"mb=1:time">} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> attributes {pipe.schedule = ["F0"]} {
    %0 = pipe.stage 0 forward(%x) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      // expected-error @below {{nn.exp still carries hpc.block}}
      %e = nn.exp %a {hpc.block = 0 : i64} : tensor<2xf32> -> tensor<2xf32>
      pipe.yield %e : tensor<2xf32>
    }
    return %0 : tensor<2xf32>
  }
}

// -----

// A gathered parameter that waits for its gradient: the memory that ZeRO 3 is there to save.
#whole = #dist.sharding<"[4, 4]">
#piece = #dist.sharding<"[4@dp, 4]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data">} {
  func.func @main(%x: tensor<4x4xf32, #whole>) -> (tensor<4x4xf32, #whole>, tensor<4x4xf32, #whole>) attributes {pipe.schedule = ["F0 B0"]} {
    %0:2 = pipe.stage 0 forward(%x) : (tensor<4x4xf32, #whole>) -> (tensor<4x4xf32, #whole>, tensor<4x4xf32, #whole>) {
    ^bb0(%a: tensor<4x4xf32, #whole>):
      %w = nn.parameter "w" {value = dense<1.0> : tensor<4x4xf32>} : tensor<2x4xf32, #piece>
      // expected-error @unknown {{dist.all_gather (q) gathers a parameter that backward of stage 0 reads; it must gather it again}}
      %g = dist.all_gather %w {after = #whole, axis = "dp", before = #piece, from_dim = 0 : i64, from_sub = 0 : i64} : tensor<2x4xf32, #piece> -> tensor<4x4xf32, #whole> loc("q")
      %y = nn.matmul %a, %g : tensor<4x4xf32, #whole>, tensor<4x4xf32, #whole> -> tensor<4x4xf32, #whole> loc("q")
      pipe.yield %y, %g : tensor<4x4xf32, #whole>, tensor<4x4xf32, #whole>
    }
    %1 = pipe.stage 0 backward(%0#1) : (tensor<4x4xf32, #whole>) -> tensor<4x4xf32, #whole> {
    ^bb0(%g: tensor<4x4xf32, #whole>):
      %e = nn.exp %g : tensor<4x4xf32, #whole> -> tensor<4x4xf32, #whole> loc(fused<"gradient">["q"])
      pipe.yield %e : tensor<4x4xf32, #whole>
    }
    return %0#0, %1 : tensor<4x4xf32, #whole>, tensor<4x4xf32, #whole>
  }
}
