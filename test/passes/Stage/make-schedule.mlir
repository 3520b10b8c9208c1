// RUN: hpc-opt %s --hpc-make-schedule --hpc-verify-staged --split-input-file | FileCheck %s

// Forward only: each stage as it comes, receives one ahead, drains one late. Another order here is another plan.
// CHECK-LABEL: func.func @main
// CHECK-SAME: pipe.schedule = ["F0 F1 DF0 F2 DF1 DF2", "RF0 RF1 F0 RF2 F1 F2"]
module attributes {dist.mesh = #dist.mesh<"mb=3:time, dp=1:data, tp=1:tensor">} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %f = pipe.stage 0 forward(%x) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      pipe.yield %a : tensor<2xf32>
    }
    %t = pipe.transfer %f {from = 0 : i64, to = 1 : i64} : tensor<2xf32> -> tensor<2xf32>
    %g = pipe.stage 1 forward(%t) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      pipe.yield %a : tensor<2xf32>
    }
    return %g : tensor<2xf32>
  }
}

// -----

// Backward programs make it 1f1b, an update stands last and only where there is one.
// CHECK-LABEL: func.func @main
// CHECK-SAME: pipe.schedule = ["F0 RB0 F1 B0 RB1 DF0 F2 RB2 B1 B2 DF1 DF2 U", "RF0 F0 RF1 B0 F1 RF2 B1 F2 DB0 B2 DB1 DB2"]
module attributes {dist.mesh = #dist.mesh<"mb=3:time, dp=1:data, tp=1:tensor">} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %f = pipe.stage 0 forward(%x) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      pipe.yield %a : tensor<2xf32>
    }
    %t = pipe.transfer %f {from = 0 : i64, to = 1 : i64} : tensor<2xf32> -> tensor<2xf32>
    %g = pipe.stage 1 forward(%t) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      pipe.yield %a : tensor<2xf32>
    }
    %h = pipe.stage 1 backward(%g) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      pipe.yield %a : tensor<2xf32>
    }
    %back = pipe.transfer %h {from = 1 : i64, to = 0 : i64} : tensor<2xf32> -> tensor<2xf32>
    %i = pipe.stage 0 backward(%back) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      pipe.yield %a : tensor<2xf32>
    }
    %u = pipe.stage 0 update(%i) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      pipe.yield %a : tensor<2xf32>
    }
    return %u : tensor<2xf32>
  }
}
