// RUN: split-file %s %t
// RUN: /usr/bin/python3 -c "import numpy, sys; numpy.savez(sys.argv[1], x=numpy.arange(12, dtype='f4').reshape(4, 3))" %t/x.npz
// RUN: hpc-opt %t/sums.mlir -o %t/sums.plan && hpc-run %t/sums.plan --poison --input=%t/x.npz --output=%t/o.npz
// RUN: /usr/bin/python3 -c "import numpy, sys; x, o = (numpy.load(p) for p in sys.argv[1:]); s = x['x'].sum(0); assert (o['s'] == s).all() and (o['t'] == 2 * s).all(), (o['s'], o['t'])" %t/x.npz %t/o.npz
// RUN: hpc-opt %t/rounds.mlir -o %t/rounds.plan && hpc-run %t/rounds.plan --poison --input=%t/x.npz --output=%t/o.npz
// RUN: /usr/bin/python3 -c "import numpy, sys; x, o = (numpy.load(p) for p in sys.argv[1:]); assert (o['t'] == 2 * x['x'].sum(0) + 0.5).all(), o['t']" %t/x.npz %t/o.npz
// RUN: hpc-opt %t/sent.mlir -o %t/sent.plan && hpc-plan %t/sent.plan | FileCheck %t/sent.mlir
// RUN: hpc-opt %t/kept.mlir -o %t/kept.plan && hpc-plan %t/kept.plan | FileCheck %t/kept.mlir
// RUN: hpc-opt %t/states.mlir -o %t/states.plan && hpc-plan %t/states.plan | FileCheck %t/states.mlir
// RUN: hpc-opt %t/rows.mlir -o %t/rows.plan && hpc-plan %t/rows.plan | FileCheck %t/rows.mlir
// RUN: not hpc-opt %t/rows.mlir --target=cuda -o %t/none.plan 2>&1 | FileCheck %t/rows.mlir --check-prefix=DEVICE

//--- sums.mlir
// Two rounds of an update all-reduce the same sum over micro-batches. The first all-reduce is not in place, or the second would sum up its result.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<1x3xf32, #dist.sharding<"[4@(mb, dp), 3]">> {nn.name = "x"}) -> (tensor<1x3xf32, #dist.sharding<"[1, 3]">> {nn.name = "s"}, tensor<1x3xf32, #dist.sharding<"[1, 3]">> {nn.name = "t"})
      attributes {pipe.schedule = ["F0 F1 U"]} {
    %f = pipe.stage 0 forward (%x) : (tensor<1x3xf32, #dist.sharding<"[4@(mb, dp), 3]">>) -> tensor<1x3xf32, #dist.sharding<"[1, 3] partial{dp}">> {
    ^bb0(%r: tensor<1x3xf32, #dist.sharding<"[4@(mb, dp), 3]">>):
      %s = nn.reduce sum %r {axes = array<i64: 0>} : tensor<1x3xf32, #dist.sharding<"[4@(mb, dp), 3]">> -> tensor<1x3xf32, #dist.sharding<"[1, 3] partial{mb, dp}">>
      %a = dist.accumulate %s {axes = ["mb"], before = #dist.sharding<"[1, 3] partial{mb, dp}">, after = #dist.sharding<"[1, 3] partial{dp}">} : tensor<1x3xf32, #dist.sharding<"[1, 3] partial{mb, dp}">> -> tensor<1x3xf32, #dist.sharding<"[1, 3] partial{dp}">>
      pipe.yield %a : tensor<1x3xf32, #dist.sharding<"[1, 3] partial{dp}">>
    }
    %u = pipe.stage 0 update (%f) : (tensor<1x3xf32, #dist.sharding<"[1, 3] partial{dp}">>) -> tensor<1x3xf32, #dist.sharding<"[1, 3]">> {
    ^bb0(%a: tensor<1x3xf32, #dist.sharding<"[1, 3] partial{dp}">>):
      %s = dist.all_reduce %a {axes = ["dp"], kind = #dist<reduce_kind sum>, before = #dist.sharding<"[1, 3] partial{dp}">, after = #dist.sharding<"[1, 3]">} : tensor<1x3xf32, #dist.sharding<"[1, 3] partial{dp}">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
      pipe.yield %s : tensor<1x3xf32, #dist.sharding<"[1, 3]">>
    }
    %v = pipe.stage 0 update (%f, %u) : (tensor<1x3xf32, #dist.sharding<"[1, 3] partial{dp}">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">>) -> tensor<1x3xf32, #dist.sharding<"[1, 3]">> {
    ^bb0(%a: tensor<1x3xf32, #dist.sharding<"[1, 3] partial{dp}">>, %b: tensor<1x3xf32, #dist.sharding<"[1, 3]">>):
      %s = dist.all_reduce %a {axes = ["dp"], kind = #dist<reduce_kind sum>, before = #dist.sharding<"[1, 3] partial{dp}">, after = #dist.sharding<"[1, 3]">} : tensor<1x3xf32, #dist.sharding<"[1, 3] partial{dp}">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
      %t = nn.add %s, %b : tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
      pipe.yield %t : tensor<1x3xf32, #dist.sharding<"[1, 3]">>
    }
    return %u, %v : tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">>
  }
}

//--- states.mlir
// A state is written once: right after the op that makes its next value, if no later op reads the old one (a); else at the end (b); never, if it stays the same (c).
// CHECK: state a: f32[3, 3] -> [[A:b[0-9]+]],
// CHECK: state b: f32[3, 3] -> [[B:b[0-9]+]],
// CHECK: program forward
// CHECK-NEXT: load
// CHECK-NEXT: gemm [[A1:b[0-9]+]] = [[A]] *
// CHECK-NEXT: copy [[A]] = [[A1]],
// CHECK-NEXT: gemm [[B1:b[0-9]+]] = b{{[0-9]+}} * [[B]],
// CHECK-NEXT: gemm
// CHECK-NEXT: gemm
// CHECK-NEXT: store output o
// CHECK-NEXT: copy [[B]] = [[B1]],
// CHECK-NOT: copy
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<3x3xf32, #dist.sharding<"[3, 3]">> {nn.name = "x"}, %a: tensor<3x3xf32, #dist.sharding<"[3, 3]">> {nn.state = "a", nn.initial = 1.0 : f64}, %b: tensor<3x3xf32, #dist.sharding<"[3, 3]">> {nn.state = "b", nn.initial = 1.0 : f64}, %c: tensor<3x3xf32, #dist.sharding<"[3, 3]">> {nn.state = "c", nn.initial = 1.0 : f64})
      -> (tensor<3x3xf32, #dist.sharding<"[3, 3]">> {nn.name = "o"}, tensor<3x3xf32, #dist.sharding<"[3, 3]">> {nn.writes = "a"}, tensor<3x3xf32, #dist.sharding<"[3, 3]">> {nn.writes = "b"}, tensor<3x3xf32, #dist.sharding<"[3, 3]">> {nn.writes = "c"}) {
    %a1 = nn.matmul %a, %x : tensor<3x3xf32, #dist.sharding<"[3, 3]">>, tensor<3x3xf32, #dist.sharding<"[3, 3]">> -> tensor<3x3xf32, #dist.sharding<"[3, 3]">>
    %b1 = nn.matmul %x, %b : tensor<3x3xf32, #dist.sharding<"[3, 3]">>, tensor<3x3xf32, #dist.sharding<"[3, 3]">> -> tensor<3x3xf32, #dist.sharding<"[3, 3]">>
    %o0 = nn.matmul %x, %x : tensor<3x3xf32, #dist.sharding<"[3, 3]">>, tensor<3x3xf32, #dist.sharding<"[3, 3]">> -> tensor<3x3xf32, #dist.sharding<"[3, 3]">>
    %o = nn.matmul %o0, %b : tensor<3x3xf32, #dist.sharding<"[3, 3]">>, tensor<3x3xf32, #dist.sharding<"[3, 3]">> -> tensor<3x3xf32, #dist.sharding<"[3, 3]">>
    return %o, %a1, %b1, %c : tensor<3x3xf32, #dist.sharding<"[3, 3]">>, tensor<3x3xf32, #dist.sharding<"[3, 3]">>, tensor<3x3xf32, #dist.sharding<"[3, 3]">>, tensor<3x3xf32, #dist.sharding<"[3, 3]">>
  }
}

//--- rounds.mlir
// The first round of an update replaces a state whose old value the second round reads: the state is written after both.
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<4x3xf32, #dist.sharding<"[4, 3]">> {nn.name = "x"}, %m: tensor<1x3xf32, #dist.sharding<"[1, 3]">> {nn.state = "m", nn.initial = 0.5 : f64})
      -> (tensor<1x3xf32, #dist.sharding<"[1, 3]">> {nn.name = "t"}, tensor<1x3xf32, #dist.sharding<"[1, 3]">> {nn.writes = "m"}) attributes {pipe.schedule = ["F0 U"]} {
    %f = pipe.stage 0 forward (%x) : (tensor<4x3xf32, #dist.sharding<"[4, 3]">>) -> tensor<1x3xf32, #dist.sharding<"[1, 3]">> {
    ^bb0(%a: tensor<4x3xf32, #dist.sharding<"[4, 3]">>):
      %s = nn.reduce sum %a {axes = array<i64: 0>} : tensor<4x3xf32, #dist.sharding<"[4, 3]">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
      pipe.yield %s : tensor<1x3xf32, #dist.sharding<"[1, 3]">>
    }
    %u:2 = pipe.stage 0 update (%f, %m) : (tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">>) -> (tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">>) {
    ^bb0(%a: tensor<1x3xf32, #dist.sharding<"[1, 3]">>, %b: tensor<1x3xf32, #dist.sharding<"[1, 3]">>):
      %d = nn.add %a, %a : tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
      %n = nn.sub %b, %d : tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
      pipe.yield %d, %n : tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">>
    }
    %v = pipe.stage 0 update (%u#0, %m) : (tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">>) -> tensor<1x3xf32, #dist.sharding<"[1, 3]">> {
    ^bb0(%a: tensor<1x3xf32, #dist.sharding<"[1, 3]">>, %b: tensor<1x3xf32, #dist.sharding<"[1, 3]">>):
      %t = nn.add %a, %b : tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">> -> tensor<1x3xf32, #dist.sharding<"[1, 3]">>
      pipe.yield %t : tensor<1x3xf32, #dist.sharding<"[1, 3]">>
    }
    return %v, %u#1 : tensor<1x3xf32, #dist.sharding<"[1, 3]">>, tensor<1x3xf32, #dist.sharding<"[1, 3]">>
  }
}

//--- sent.mlir
// An input and a weight are copied into a slot before they are sent, once for two sends. A computed value lies in a slot already.
// CHECK: program forward
// CHECK-COUNT-2: copy
// CHECK-NOT: copy
// CHECK: stage 1
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {nn.name = "x"}) -> (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {nn.name = "o"})
      attributes {pipe.schedule = ["F0 F1 DF0 DF1", "RF0 RF1 F0 F1"]} {
    %f:4 = pipe.stage 0 forward (%x) : (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>) -> (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<3xf32, #dist.sharding<"[3]">>, tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>) {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>):
      %w = nn.parameter "w" {value = dense<1.0> : tensor<3xf32>} : tensor<3xf32, #dist.sharding<"[3]">>
      %n = nn.neg %a : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
      pipe.yield %a, %a, %w, %n : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<3xf32, #dist.sharding<"[3]">>, tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    }
    %0 = pipe.transfer %f#0 {from = 0 : i64, to = 1 : i64} : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    %1 = pipe.transfer %f#1 {from = 0 : i64, to = 1 : i64} : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    %2 = pipe.transfer %f#2 {from = 0 : i64, to = 1 : i64} : tensor<3xf32, #dist.sharding<"[3]">> -> tensor<3xf32, #dist.sharding<"[3]">>
    %3 = pipe.transfer %f#3 {from = 0 : i64, to = 1 : i64} : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    %o = pipe.stage 1 forward (%0, %1, %2, %3) : (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<3xf32, #dist.sharding<"[3]">>, tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, %b: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, %w: tensor<3xf32, #dist.sharding<"[3]">>, %c: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>):
      %s = nn.add %a, %b : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
      %t = nn.add %s, %c : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
      %y = nn.mul %t, %w : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>, tensor<3xf32, #dist.sharding<"[3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
      pipe.yield %y : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    }
    return %o : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
  }
}

//--- kept.mlir
// A value that another program of the stage has kept is copied before it is sent, too.
// CHECK: program backward
// CHECK-NEXT: copy
// CHECK-NEXT: send
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {nn.name = "x"}) -> (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {nn.name = "o"}) attributes {pipe.schedule = ["F0 F1 B0 B1 DB0 DB1", "RB0 RB1 B0 B1"]} {
    %f = pipe.stage 0 forward (%x) : (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>):
      %n = nn.neg %a : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
      pipe.yield %n : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    }
    %b = pipe.stage 0 backward (%f) : (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>):
      pipe.yield %a : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    }
    %t = pipe.transfer %b {from = 0 : i64, to = 1 : i64} : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    %o = pipe.stage 1 backward (%t) : (tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>) -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> {
    ^bb0(%a: tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>):
      %n = nn.neg %a : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">> -> tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
      pipe.yield %n : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
    }
    return %o : tensor<2x3xf32, #dist.sharding<"[4@mb, 3]">>
  }
}

//--- rows.mlir
// A state cut over micro-batches is one buffer with the rows of all of them; each reads and writes its own, which data parallelism cuts.
// CHECK: state a: f32[8, 3] -> [[A:b[0-9]+]],
// CHECK: program forward
// CHECK-NEXT: load
// CHECK-NEXT: gemm [[A1:b[0-9]+]] = [[A]]+24*micro-batch *
// CHECK-NEXT: copy [[A]]+24*micro-batch = [[A1]], 24 bytes
// DEVICE: error[unsupported]: --micro-batches=2: the rows that a micro-batch has of state 'a' take 24 bytes, and on a device they begin at multiples of 16; choose --max-length as a multiple of 8, or --micro-batches=1
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<3x3xf32, #dist.sharding<"[3, 3]">> {nn.name = "x"}, %a: tensor<2x3xf32, #dist.sharding<"[8@(mb, dp), 3]">> {nn.state = "a", nn.initial = 1.0 : f64})
      -> (tensor<2x3xf32, #dist.sharding<"[8@(mb, dp), 3]">> {nn.writes = "a"}) attributes {pipe.schedule = ["F0 F1"]} {
    %f = pipe.stage 0 forward (%x, %a) : (tensor<3x3xf32, #dist.sharding<"[3, 3]">>, tensor<2x3xf32, #dist.sharding<"[8@(mb, dp), 3]">>) -> tensor<2x3xf32, #dist.sharding<"[8@(mb, dp), 3]">> {
    ^bb0(%y: tensor<3x3xf32, #dist.sharding<"[3, 3]">>, %b: tensor<2x3xf32, #dist.sharding<"[8@(mb, dp), 3]">>):
      %c = nn.matmul %b, %y : tensor<2x3xf32, #dist.sharding<"[8@(mb, dp), 3]">>, tensor<3x3xf32, #dist.sharding<"[3, 3]">> -> tensor<2x3xf32, #dist.sharding<"[8@(mb, dp), 3]">>
      pipe.yield %c : tensor<2x3xf32, #dist.sharding<"[8@(mb, dp), 3]">>
    }
    return %f : tensor<2x3xf32, #dist.sharding<"[8@(mb, dp), 3]">>
  }
}
