// RUN: /usr/bin/python3 %S/Inputs/programs.py make %t.npz
// RUN: hpc-opt %s --hpc-make-schedule --hpc-verify-staged -o %t.mlir && hpc-opt %t.mlir -o %t.plan
// RUN: hpc-run %t.plan --poison --input=%t.npz --output=%t.out.npz && /usr/bin/python3 %S/Inputs/programs.py check %t.npz %t.out.npz | FileCheck %s
// RUN: hpc-plan %t.plan | FileCheck %s --check-prefix=PLAN
// RUN: printf 'F0 F1 F2 F3 B0 B1 B2 B3 W0 W1 W2 W3\nF0 F1 F2 F3 B0 B1 B2 B3 W0 W1 W2 W3\n' > %t.gpipe.txt
// RUN: hpc-opt %s --hpc-make-schedule="schedule=%t.gpipe.txt" -o %t.mlir && hpc-opt %t.mlir -o %t.plan
// RUN: hpc-run %t.plan --poison --input=%t.npz --output=%t.out.npz && /usr/bin/python3 %S/Inputs/programs.py check %t.npz %t.out.npz | FileCheck %s
// RUN: printf 'F2 F0 B2 B0 F1 F3 W0 B3 B1 W2 W3 W1\nF2 B2 F0 B0 W2 F3 F1 B3 B1 W1 W3 W0\n' > %t.wild.txt
// RUN: hpc-opt %s --hpc-make-schedule="schedule=%t.wild.txt" -o %t.mlir && hpc-opt %t.mlir -o %t.plan
// RUN: hpc-run %t.plan --poison --input=%t.npz --output=%t.out.npz && /usr/bin/python3 %S/Inputs/programs.py check %t.npz %t.out.npz | FileCheck %s

// Forward, backward and weight gradient of two stages: activations go on, gradients come back, what a later program reads is kept. With one
// slot too few, or kept until the wrong program, another micro-batch's numbers or poison would come out, by one schedule or another.
// CHECK: equal
// What stage 1 receives is kept for its backward where it arrives, and sent nowhere: no copy.
// PLAN-NOT: copy
// PLAN: stage 0 runs F0 RB0 F1 B0 W0 RB1
// With weight gradients apart it is zb-h1, and the plan's own clock idles 1 of 13 units: (p-1)/(3m+p-1).
// PLAN: bubble: 7.7%
module attributes {dist.mesh = #dist.mesh<"mb=4:time, dp=1:data, tp=1:tensor">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> {nn.name = "x"}) ->
      (tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> {nn.name = "h"}, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> {nn.name = "k"}, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> {nn.name = "l"}) {
    %y0 = pipe.stage 0 forward(%x) : (tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>):
      %y = nn.tanh %a : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
      pipe.yield %y : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
    }
    %y1 = pipe.transfer %y0 {from = 0 : i64, to = 1 : i64} : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
    %z1:2 = pipe.stage 1 forward(%y1) : (tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>) -> (tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>) {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>):
      %z = nn.mul %a, %a : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
      pipe.yield %z, %a : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
    }
    %g1 = pipe.stage 1 backward(%z1#0, %z1#1) : (tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, %b: tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>):
      %g = nn.add %a, %b : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
      pipe.yield %g : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
    }
    %g0 = pipe.transfer %g1 {from = 1 : i64, to = 0 : i64} : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
    %h1 = pipe.stage 1 weight_gradient(%g1, %z1#0) : (tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, %b: tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>):
      %h = nn.mul %a, %b : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
      pipe.yield %h : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
    }
    %k0 = pipe.stage 0 backward(%g0, %y0) : (tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, %b: tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>):
      %k = nn.mul %a, %b : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
      pipe.yield %k : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
    }
    %l0 = pipe.stage 0 weight_gradient(%x, %k0) : (tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, %b: tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>):
      %l = nn.sub %b, %a : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
      pipe.yield %l : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
    }
    return %h1, %k0, %l0 : tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@mb, 3]">>
  }
}
