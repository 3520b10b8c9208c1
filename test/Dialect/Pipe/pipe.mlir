// RUN: hpc-opt %s | hpc-opt | FileCheck %s

// Every kind of program prints and parses; a chunk is printed where it is not 0; transfers go both ways and between any two stages; a
// program reads what another one of its stage made. If a key is lost here, a dumped phase continues to another plan.
// CHECK: %[[F:.*]]:2 = pipe.stage 0 forward(
// CHECK: pipe.transfer %[[F]]#0 {from = 0 : i64, to = 2 : i64}
// CHECK: pipe.stage 2 chunk 1 forward(
// CHECK: %[[G:.*]] = pipe.transfer {{.*}} {from = 2 : i64, to = 0 : i64}
// CHECK: pipe.stage 0 backward(%[[F]]#1, %[[G]])
// CHECK: pipe.stage 0 weight_gradient(
// CHECK: pipe.stage 0 update(
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %f:2 = pipe.stage 0 forward(%x) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%a: tensor<2xf32>):
    pipe.yield %a, %a : tensor<2xf32>, tensor<2xf32>
  }
  %t = pipe.transfer %f#0 {from = 0 : i64, to = 2 : i64} : tensor<2xf32> -> tensor<2xf32>
  %h = pipe.stage 2 chunk 1 forward(%t) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    pipe.yield %a : tensor<2xf32>
  }
  %g = pipe.transfer %h {from = 2 : i64, to = 0 : i64} : tensor<2xf32> -> tensor<2xf32>
  %b = pipe.stage 0 backward(%f#1, %g) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>, %c: tensor<2xf32>):
    pipe.yield %c : tensor<2xf32>
  }
  %w = pipe.stage 0 weight_gradient(%b) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    pipe.yield %a : tensor<2xf32>
  }
  %u = pipe.stage 0 update(%w) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    pipe.yield %a : tensor<2xf32>
  }
  return %u : tensor<2xf32>
}
