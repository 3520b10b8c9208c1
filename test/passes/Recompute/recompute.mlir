// RUN: hpc-opt %s -split-input-file --hpc-recompute --hpc-verify-recomputed --hpc-verify-staged 2>/dev/null | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: hpc-opt %s -split-input-file --hpc-recompute=policy=attention --hpc-verify-recomputed --hpc-verify-staged 2>/dev/null | FileCheck %s --check-prefixes=CHECK,ATTENTION
// RUN: hpc-opt %s -split-input-file --hpc-recompute=policy=full --hpc-verify-recomputed --hpc-verify-staged 2>/dev/null | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: hpc-opt %s -split-input-file --hpc-recompute="policy=auto budgets=10000" --hpc-verify-recomputed --hpc-verify-staged 2>/dev/null | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: hpc-opt %s -split-input-file --hpc-recompute="policy=auto budgets=180" --hpc-verify-recomputed --hpc-verify-staged 2>/dev/null | FileCheck %s --check-prefixes=CHEAP
// RUN: hpc-opt %s -split-input-file --hpc-recompute="policy=auto budgets=0" --hpc-verify-recomputed --hpc-verify-staged 2>/dev/null | FileCheck %s --check-prefixes=CHECK,FULL

// Backward reads %z (in front of the tanh), %h (behind it, which the next block reads too) and %e. Two micro-batches are in flight, so a value of 40 bytes costs 80. Nothing is
// computed again unless it is asked for. Full keeps what goes from block to block, %h, and makes %z of %x, which the function has, and a parameter of its own; %e of %h alone.
// A budget of 180 bytes has no room for all three: the exponential is the cheapest to repeat, and %z, behind a product, stays. If a clone stood before its block's first
// reader (the product before it), it would live longer than it must; if what forward no longer gives stayed its result, it would still be kept.
// CHECK: hpc.kept_bytes = array<i64:
// NONE-SAME: 240>
// ATTENTION-SAME: 240>
// FULL-SAME: 80>
// CHEAP: hpc.kept_bytes = array<i64: 160>
// CHECK-NOT: hpc.block
// NONE: %[[F:.*]]:4 = pipe.stage 0 forward
// NONE: pipe.stage 0 backward(%[[F]]#1, %[[F]]#2, %[[F]]#3)
// NONE-NOT: nn.exp
// NONE: pipe.yield
// FULL: %[[F:.*]]:2 = pipe.stage 0 forward(%[[X:.*]]) :
// FULL: pipe.stage 0 backward(%[[F]]#1, %[[X]])
// FULL: ^bb0(%[[H:.*]]: tensor<2x5xf32{{.*}}, %[[XB:.*]]: tensor<2x3xf32{{.*}}):
// FULL: %[[W:.*]] = nn.parameter "w"
// FULL: %[[E:.*]] = nn.exp %[[H]]
// FULL: %[[P:.*]] = nn.mul %[[H]], %[[E]]
// FULL: %[[Z:.*]] = nn.matmul %[[XB]], %[[W]]
// FULL: nn.mul %[[P]], %[[Z]]
// CHEAP: pipe.stage 0 backward
// CHEAP-NOT: nn.matmul
// CHEAP: nn.exp
// CHEAP-NOT: nn.matmul
// CHEAP: pipe.yield
#x = #dist.sharding<"[4@mb, 3]">
#h = #dist.sharding<"[4@mb, 5]">
#w = #dist.sharding<"[3, 5]">
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%x: tensor<2x3xf32, #x> {nn.name = "x"}) -> (tensor<2x3xf32, #x> {nn.name = "y"}, tensor<2x5xf32, #h> {nn.name = "g"}) attributes {pipe.schedule = ["F0 F1 B0 B1"]} {
    %0:4 = pipe.stage 0 forward(%x) : (tensor<2x3xf32, #x>) -> (tensor<2x3xf32, #x>, tensor<2x5xf32, #h>, tensor<2x5xf32, #h>, tensor<2x5xf32, #h>) {
    ^bb0(%a: tensor<2x3xf32, #x>):
      %w = nn.parameter "w" {value = dense<1.0> : tensor<3x5xf32>} : tensor<3x5xf32, #w>
      %z = nn.matmul %a, %w {hpc.block = 0 : i64} : tensor<2x3xf32, #x>, tensor<3x5xf32, #w> -> tensor<2x5xf32, #h> loc("in")
      %h = nn.tanh %z {hpc.block = 0 : i64} : tensor<2x5xf32, #h> -> tensor<2x5xf32, #h> loc("tanh")
      %e = nn.exp %h {hpc.block = 1 : i64} : tensor<2x5xf32, #h> -> tensor<2x5xf32, #h> loc("exp")
      %y = nn.matmul %e, %w {hpc.block = 1 : i64, transpose_rhs} : tensor<2x5xf32, #h>, tensor<3x5xf32, #w> -> tensor<2x3xf32, #x> loc("out")
      pipe.yield %y, %h, %e, %z : tensor<2x3xf32, #x>, tensor<2x5xf32, #h>, tensor<2x5xf32, #h>, tensor<2x5xf32, #h>
    }
    %1 = pipe.stage 0 backward(%0#1, %0#2, %0#3) : (tensor<2x5xf32, #h>, tensor<2x5xf32, #h>, tensor<2x5xf32, #h>) -> tensor<2x5xf32, #h> {
    ^bb0(%h: tensor<2x5xf32, #h>, %e: tensor<2x5xf32, #h>, %z: tensor<2x5xf32, #h>):
      %p = nn.mul %h, %e : tensor<2x5xf32, #h>, tensor<2x5xf32, #h> -> tensor<2x5xf32, #h> loc(fused<"gradient">["exp"])
      %g = nn.mul %p, %z : tensor<2x5xf32, #h>, tensor<2x5xf32, #h> -> tensor<2x5xf32, #h> loc(fused<"gradient">["in"])
      pipe.yield %g : tensor<2x5xf32, #h>
    }
    return %0#0, %1 : tensor<2x3xf32, #x>, tensor<2x5xf32, #h>
  }
}

// -----

// Gradients in forward itself. A parameter that is stored in pieces is gathered for forward and again for its gradient, whatever the policy: ZeRO 3 promises that no rank holds
// it whole in between. The scores of an attention that is spelled out lie between two products of activations: "attention" computes them again and keeps the query. (What the last block makes is read at once and kept anyway: here that is the last product.)
// CHECK-LABEL: #dist.mesh<"mb=1:time, dp=2:data">
// CHECK: dist.all_gather
// CHECK: nn.matmul
// CHECK: nn.exp
// CHECK: nn.matmul
// NONE-NOT: nn.exp
// FULL-NOT: nn.exp
// ATTENTION: nn.matmul
// ATTENTION: nn.exp
// CHECK: nn.add
// CHECK: dist.all_gather {{.*}}run again for the gradients
// CHECK: nn.matmul
// CHECK: pipe.yield
#rows = #dist.sharding<"[2, 4]">
#scores = #dist.sharding<"[2, 2]">
#whole = #dist.sharding<"[4, 4]">
#piece = #dist.sharding<"[4@dp, 4]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data">} {
  func.func @main(%x: tensor<2x4xf32, #rows> {nn.name = "x"}) -> (tensor<2x4xf32, #rows> {nn.name = "y"}) attributes {pipe.schedule = ["F0"]} {
    %0 = pipe.stage 0 forward(%x) : (tensor<2x4xf32, #rows>) -> (tensor<2x4xf32, #rows>) {
    ^bb0(%a: tensor<2x4xf32, #rows>):
      %w = nn.parameter "w" {value = dense<1.0> : tensor<4x4xf32>} : tensor<2x4xf32, #piece>
      %g = dist.all_gather %w {after = #whole, axis = "dp", before = #piece, cause = "matmul needs it", from_dim = 0 : i64, from_sub = 0 : i64} : tensor<2x4xf32, #piece> -> tensor<4x4xf32, #whole> loc("q")
      %q = nn.matmul %a, %g {hpc.block = 0 : i64} : tensor<2x4xf32, #rows>, tensor<4x4xf32, #whole> -> tensor<2x4xf32, #rows> loc("q")
      %s = nn.matmul %q, %q {hpc.block = 0 : i64, transpose_rhs} : tensor<2x4xf32, #rows>, tensor<2x4xf32, #rows> -> tensor<2x2xf32, #scores> loc("scores")
      %p = nn.exp %s {hpc.block = 0 : i64} : tensor<2x2xf32, #scores> -> tensor<2x2xf32, #scores> loc("exp")
      %o = nn.matmul %p, %q {hpc.block = 1 : i64} : tensor<2x2xf32, #scores>, tensor<2x4xf32, #rows> -> tensor<2x4xf32, #rows> loc("o")
      %d = nn.matmul %p, %o : tensor<2x2xf32, #scores>, tensor<2x4xf32, #rows> -> tensor<2x4xf32, #rows> loc(fused<"gradient">["o"])
      %e = nn.add %d, %q : tensor<2x4xf32, #rows>, tensor<2x4xf32, #rows> -> tensor<2x4xf32, #rows> loc(fused<"gradient">["o"])
      %r = nn.matmul %e, %g : tensor<2x4xf32, #rows>, tensor<4x4xf32, #whole> -> tensor<2x4xf32, #rows> loc(fused<"gradient">["q"])
      pipe.yield %r : tensor<2x4xf32, #rows>
    }
    return %0 : tensor<2x4xf32, #rows>
  }
}

// -----

// What backward reads of windows is their image: 4 x 8 numbers are kept in two slots, not 4 x 3 x 8. The padding with zeros is the image's as well; full makes the image again.
// CHECK: hpc.kept_bytes = array<i64:
// NONE-SAME: 256>
// ATTENTION-SAME: 256>
// FULL-SAME: 0>
// NONE: %[[F:.*]]:2 = pipe.stage 0 forward
// NONE: pipe.stage 0 backward(%[[F]]#1)
// FULL: pipe.stage 0 backward
// FULL: nn.tanh
// ATTENTION: pipe.stage 0 backward
// CHECK: %[[PB:.*]] = nn.pad
// CHECK: nn.window %[[PB]]
#x = #dist.sharding<"[8@mb, 8]">
#p = #dist.sharding<"[8@mb, 10]">
#v = #dist.sharding<"[8@mb, 3, 8]">
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%x: tensor<4x8xf32, #x> {nn.name = "x"}) -> (tensor<4x3x8xf32, #v> {nn.name = "y"}, tensor<4x3x8xf32, #v> {nn.name = "g"}) attributes {pipe.schedule = ["F0 F1 B0 B1"]} {
    %0:2 = pipe.stage 0 forward(%x) : (tensor<4x8xf32, #x>) -> (tensor<4x3x8xf32, #v>, tensor<4x3x8xf32, #v>) {
    ^bb0(%a: tensor<4x8xf32, #x>):
      %h = nn.tanh %a {hpc.block = 0 : i64} : tensor<4x8xf32, #x> -> tensor<4x8xf32, #x> loc("tanh")
      %p = nn.pad %h {hpc.block = 0 : i64, low = array<i64: 0, 1>, high = array<i64: 0, 1>, value = 0.0 : f32} : tensor<4x8xf32, #x> -> tensor<4x10xf32, #p> loc("conv")
      %w = nn.window %p {hpc.block = 0 : i64, strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<4x10xf32, #p> -> tensor<4x3x8xf32, #v> loc("conv")
      %y = nn.exp %w {hpc.block = 0 : i64} : tensor<4x3x8xf32, #v> -> tensor<4x3x8xf32, #v> loc("exp")
      pipe.yield %y, %w : tensor<4x3x8xf32, #v>, tensor<4x3x8xf32, #v>
    }
    %1 = pipe.stage 0 backward(%0#1) : (tensor<4x3x8xf32, #v>) -> tensor<4x3x8xf32, #v> {
    ^bb0(%w: tensor<4x3x8xf32, #v>):
      %g = nn.mul %w, %w : tensor<4x3x8xf32, #v>, tensor<4x3x8xf32, #v> -> tensor<4x3x8xf32, #v> loc(fused<"gradient">["exp"])
      pipe.yield %g : tensor<4x3x8xf32, #v>
    }
    return %0#0, %1 : tensor<4x3x8xf32, #v>, tensor<4x3x8xf32, #v>
  }
}

// -----

// A widened value is never kept, whatever the policy: its operand has the same numbers. Two slots of 2 x 5 numbers of 16 bits are kept, not of 32.
// CHECK: hpc.kept_bytes = array<i64:
// NONE-SAME: 40>
// ATTENTION-SAME: 40>
// FULL-SAME: 0>
// NONE: %[[F:.*]]:2 = pipe.stage 0 forward
// NONE: pipe.stage 0 backward(%[[F]]#1)
// NONE: ^bb0(%[[H:.*]]: tensor<2x5xbf16
// NONE: %[[C:.*]] = nn.cast %[[H]]
// NONE: nn.mul %[[C]], %[[C]]
#x = #dist.sharding<"[4@mb, 5]">
module attributes {dist.mesh = #dist.mesh<"mb=2:time">} {
  func.func @main(%x: tensor<2x5xbf16, #x> {nn.name = "x"}) -> (tensor<2x5xf32, #x> {nn.name = "y"}, tensor<2x5xf32, #x> {nn.name = "g"}) attributes {pipe.schedule = ["F0 F1 B0 B1"]} {
    %0:2 = pipe.stage 0 forward(%x) : (tensor<2x5xbf16, #x>) -> (tensor<2x5xf32, #x>, tensor<2x5xf32, #x>) {
    ^bb0(%a: tensor<2x5xbf16, #x>):
      %h = nn.tanh %a {hpc.block = 0 : i64} : tensor<2x5xbf16, #x> -> tensor<2x5xbf16, #x> loc("tanh")
      %c = nn.cast %h {hpc.block = 0 : i64} : tensor<2x5xbf16, #x> -> tensor<2x5xf32, #x> loc("cast")
      %y = nn.exp %c {hpc.block = 0 : i64} : tensor<2x5xf32, #x> -> tensor<2x5xf32, #x> loc("exp")
      pipe.yield %y, %c : tensor<2x5xf32, #x>, tensor<2x5xf32, #x>
    }
    %1 = pipe.stage 0 backward(%0#1) : (tensor<2x5xf32, #x>) -> tensor<2x5xf32, #x> {
    ^bb0(%c: tensor<2x5xf32, #x>):
      %g = nn.mul %c, %c : tensor<2x5xf32, #x>, tensor<2x5xf32, #x> -> tensor<2x5xf32, #x> loc(fused<"gradient">["exp"])
      pipe.yield %g : tensor<2x5xf32, #x>
    }
    return %0#0, %1 : tensor<2x5xf32, #x>, tensor<2x5xf32, #x>
  }
}
