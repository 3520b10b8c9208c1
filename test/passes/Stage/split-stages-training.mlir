// RUN: hpc-opt %s --hpc-split-stages="stages=2" --hpc-make-schedule --hpc-verify-staged | FileCheck %s
// RUN: hpc-opt %s --hpc-split-stages="stages=2 schedule=zb-h1" --hpc-make-schedule="schedule=zb-h1" --hpc-verify-staged | FileCheck %s --check-prefix=APART
// RUN: hpc-opt %s --hpc-split-stages="stages=1 chunks=2" --hpc-make-schedule --hpc-verify-staged | FileCheck %s --check-prefix=CHUNKS
// RUN: hpc-opt %s --hpc-split-stages --hpc-make-schedule --hpc-verify-staged | FileCheck %s --check-prefix=ONE
// RUN: printf 'F0 F1 B1 B0 U\nF0 F1 B1 B0 U\n' > %t.txt && not hpc-opt %s --hpc-split-stages="stages=2 schedule=%t.txt" --hpc-make-schedule="schedule=%t.txt" 2>&1 | FileCheck %s --check-prefix=FIRST

// The sum of a gradient begins with micro-batch 0, which writes where the others add: behind them it would lose their terms.
// FIRST: [usage] --pp-schedule={{.*}}: stage 0: B1 stands before B0, which begins the sums that the other micro-batches add to

// A step of y = tanh(x w) w^T over two micro-batches. Stage 1's backward needs the error that its forward has, stage 0's the hidden
// values: those are saved. Each backward accumulates its own term of w's gradient; only the sums cross, once a step and both ways, and
// both stages add them in the same order: stage 0's first. A gradient that went in each micro-batch, or an order of its own, would be
// slower or let the two copies of w drift apart.
// CHECK-LABEL: func.func @main
// CHECK-SAME: pipe.schedule = ["F0 RB0 F1 RB1 B0 B1 DF0 DF1 U", "RF0 F0 RF1 B0 F1 B1 DB0 DB1 U"]
// CHECK: %[[F0:.*]] = pipe.stage 0 forward(%[[X:.*]]) :
// CHECK: %[[T:.*]] = pipe.transfer %[[F0]]
// CHECK: %[[F1:.*]]:3 = pipe.stage 1 forward(%[[X]], %[[T]])
// CHECK: %[[SUB:.*]] = nn.sub
// CHECK: pipe.yield %{{.*}}, %{{.*}}, %[[SUB]]
// CHECK: %[[B1:.*]]:2 = pipe.stage 1 backward(%[[F1]]#1, %[[F1]]#2)
// CHECK: dist.accumulate
// CHECK: %[[DH:.*]] = pipe.transfer %[[B1]]#1 {{.*}}from = 1 : i64{{.*}}to = 0 : i64
// CHECK: %[[B0:.*]] = pipe.stage 0 backward(%[[X]], %[[F0]], %[[DH]])
// CHECK: dist.accumulate
// CHECK: %[[U0:.*]] = pipe.stage 0 update(%[[B0]])
// CHECK: %[[TO1:.*]] = pipe.transfer %[[U0]] {{.*}}from = 0 : i64{{.*}}to = 1 : i64
// CHECK: %[[U1:.*]] = pipe.stage 1 update(%[[B1]]#0)
// CHECK: %[[TO0:.*]] = pipe.transfer %[[U1]] {{.*}}from = 1 : i64{{.*}}to = 0 : i64
// CHECK: %[[W0:.*]] = pipe.stage 0 update(%[[LR:.*]], %[[U0]], %[[TO0]])
// CHECK: ^bb0(%{{.*}}, %[[MINE:.*]]: tensor{{.*}}, %[[OTHER:.*]]: tensor
// CHECK: nn.add %[[MINE]], %[[OTHER]]
// CHECK: %[[W1:.*]] = pipe.stage 1 update(%[[LR]], %[[TO1]], %[[U1]])
// CHECK: ^bb0(%{{.*}}, %[[OTHER:.*]]: tensor{{.*}}, %[[MINE:.*]]: tensor
// CHECK: nn.add %[[OTHER]], %[[MINE]]
// Each of them writes its copy.
// CHECK: return %[[F1]]#0, %[[W0]], %[[W1]]

// W has the product that only an accumulation reads, B what it needs for it and for the stage before.
// APART: pipe.schedule = ["F0 RB0 F1 B0 RB1 W0 B1 W1 DF0 DF1 U", "RF0 F0 RF1 B0 F1 B1 W0 W1 DB0 DB1 U"]
// APART: pipe.stage 1 backward
// APART: nn.matmul
// APART-NOT: dist.accumulate
// APART: pipe.stage 1 weight_gradient
// APART: nn.matmul {{.*}}transpose_lhs
// APART-NEXT: dist.accumulate
// APART: pipe.stage 0 backward
// APART: %[[DZ:.*]] = nn.mul
// APART: pipe.yield %[[DZ]]
// APART: pipe.stage 0 weight_gradient
// APART-NEXT: ^bb0
// APART-NEXT: nn.matmul
// APART-NEXT: dist.accumulate

// A stage has one update for all its chunks, and nothing crosses.
// CHUNKS: pipe.stage 0 forward
// CHUNKS: pipe.stage 0 chunk 1 forward
// CHUNKS: pipe.stage 0 chunk 1 backward
// CHUNKS: pipe.stage 0 backward
// CHUNKS-COUNT-1: pipe.stage 0 update
// CHUNKS-NOT: pipe.transfer
// CHUNKS-NOT: pipe.stage

// One stage does it all in forward, as no schedule asks for more; what is once a step is apart.
// ONE: pipe.stage 0 forward
// ONE: nn.add
// ONE-NEXT: dist.accumulate
// ONE: pipe.stage 0 update
// ONE-NOT: pipe.stage
#rows = #dist.sharding<"[4@mb, 3]">
#hidden = #dist.sharding<"[4@mb, 5]">
#w = #dist.sharding<"[3, 5]">
#g = #dist.sharding<"[3, 5] partial{mb}">
#s = #dist.sharding<"[]">
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%x: tensor<2x3xf32, #rows> {nn.name = "x"}, %lr: tensor<f32, #s> {nn.step_scalar = "lr"})
      -> (tensor<2x3xf32, #rows> {nn.name = "y"}, tensor<3x5xf32, #w> {nn.writes = "w"}) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<3x5xf32>} : tensor<3x5xf32, #w>
    %z = nn.matmul %x, %w : tensor<2x3xf32, #rows>, tensor<3x5xf32, #w> -> tensor<2x5xf32, #hidden> loc("in")
    %h = nn.tanh %z : tensor<2x5xf32, #hidden> -> tensor<2x5xf32, #hidden> loc("tanh")
    %y = nn.matmul %h, %w {transpose_rhs} : tensor<2x5xf32, #hidden>, tensor<3x5xf32, #w> -> tensor<2x3xf32, #rows> loc("out")
    %e = nn.sub %y, %x : tensor<2x3xf32, #rows>, tensor<2x3xf32, #rows> -> tensor<2x3xf32, #rows> loc("loss")
    %dh = nn.matmul %e, %w : tensor<2x3xf32, #rows>, tensor<3x5xf32, #w> -> tensor<2x5xf32, #hidden> loc(fused<"gradient">["out"])
    %gb = nn.matmul %e, %h {transpose_lhs} : tensor<2x3xf32, #rows>, tensor<2x5xf32, #hidden> -> tensor<3x5xf32, #g> loc(fused<"gradient">["out"])
    %dz = nn.mul %dh, %h : tensor<2x5xf32, #hidden>, tensor<2x5xf32, #hidden> -> tensor<2x5xf32, #hidden> loc(fused<"gradient">["tanh"])
    %ga = nn.matmul %x, %dz {transpose_lhs} : tensor<2x3xf32, #rows>, tensor<2x5xf32, #hidden> -> tensor<3x5xf32, #g> loc(fused<"gradient">["in"])
    %g = nn.add %gb, %ga : tensor<3x5xf32, #g>, tensor<3x5xf32, #g> -> tensor<3x5xf32, #g> loc(fused<"gradient">["in"])
    %sum = dist.accumulate %g {axes = ["mb"], before = #g, after = #w} : tensor<3x5xf32, #g> -> tensor<3x5xf32, #w> loc(fused<"gradient">["in"])
    %d = nn.mul %sum, %lr : tensor<3x5xf32, #w>, tensor<f32, #s> -> tensor<3x5xf32, #w> loc(fused<"update">["w"])
    %new = nn.sub %w, %d : tensor<3x5xf32, #w>, tensor<3x5xf32, #w> -> tensor<3x5xf32, #w> loc(fused<"update">["w"])
    return %y, %new : tensor<2x3xf32, #rows>, tensor<3x5xf32, #w>
  }
}
