// RUN: hpc-opt %s --hpc-recompute --hpc-verify-recomputed --hpc-verify-staged 2>/dev/null | FileCheck %s --check-prefixes=CHECK,AGAIN
// RUN: hpc-opt %s --hpc-recompute="policy=auto budgets=10000" --hpc-verify-recomputed --hpc-verify-staged 2>/dev/null | FileCheck %s --check-prefixes=CHECK,KEPT
// RUN: hpc-opt %s --hpc-recompute="policy=attention" --hpc-verify-recomputed --hpc-verify-staged 2>/dev/null | FileCheck %s --check-prefix=ROWS

// An activation that is gathered for a product whose weight is gathered, too, is kept in pieces and gathered again; auto keeps it whole where there is memory. One that is gathered for a
// weight which ranks have whole is kept by both. If backward kept what was gathered, a rank would have as many activations as y has ranks.
// CHECK: pipe.stage 0 forward
// CHECK: %[[T:.*]] = nn.tanh
// CHECK: %[[GT:.*]] = dist.all_gather %[[T]]
// CHECK: %[[GE:.*]] = dist.all_gather
// CHECK: nn.sigmoid
// AGAIN: %[[A:.*]] = dist.all_gather %[[T]] {{.*}}run again for the gradients
// AGAIN: nn.mul %{{.*}}, %[[A]]
// KEPT-NOT: run again
// KEPT: nn.mul %{{.*}}, %[[GT]]
// CHECK: nn.mul %{{.*}}, %[[GE]]

// With the policy attention the other is gathered again, too: rows that ranks share between products (--sp).
// ROWS: pipe.stage 0 forward
// ROWS: %[[E:.*]] = nn.exp
// ROWS: nn.sigmoid
// ROWS: %[[B:.*]] = dist.all_gather %[[E]] {{.*}}run again for the gradients
// ROWS: nn.mul %{{.*}}, %[[B]]
#whole = #dist.sharding<"[2, 4]">
#part = #dist.sharding<"[2, 4@y]">
#weight = #dist.sharding<"[4, 4]">
#piece = #dist.sharding<"[4@x, 4]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, x=2:data, y=2:tensor">} {
  func.func @main(%x: tensor<2x2xf32, #part> {nn.name = "x"}) -> (tensor<2x4xf32, #whole> {nn.name = "y"}) attributes {pipe.schedule = ["F0"]} {
    %0 = pipe.stage 0 forward(%x) : (tensor<2x2xf32, #part>) -> (tensor<2x4xf32, #whole>) {
    ^bb0(%a: tensor<2x2xf32, #part>):
      %w = nn.parameter "w" {value = dense<1.0> : tensor<4x4xf32>} : tensor<2x4xf32, #piece>
      %v = nn.parameter "v" {value = dense<1.0> : tensor<4x4xf32>} : tensor<4x4xf32, #weight>
      %t = nn.tanh %a {hpc.block = 0 : i64} : tensor<2x2xf32, #part> -> tensor<2x2xf32, #part> loc("tanh")
      %gw = dist.all_gather %w {after = #weight, axis = "x", before = #piece, cause = "matmul needs it", from_dim = 0 : i64, from_sub = 0 : i64} : tensor<2x4xf32, #piece> -> tensor<4x4xf32, #weight> loc("q")
      %gt = dist.all_gather %t {after = #whole, axis = "y", before = #part, cause = "matmul needs it", from_dim = 1 : i64, from_sub = 0 : i64, hpc.block = 0 : i64} : tensor<2x2xf32, #part> -> tensor<2x4xf32, #whole> loc("q")
      %q = nn.matmul %gt, %gw {hpc.block = 0 : i64} : tensor<2x4xf32, #whole>, tensor<4x4xf32, #weight> -> tensor<2x4xf32, #whole> loc("q")
      %e = nn.exp %a {hpc.block = 0 : i64} : tensor<2x2xf32, #part> -> tensor<2x2xf32, #part> loc("exp")
      %ge = dist.all_gather %e {after = #whole, axis = "y", before = #part, cause = "matmul needs it", from_dim = 1 : i64, from_sub = 0 : i64, hpc.block = 0 : i64} : tensor<2x2xf32, #part> -> tensor<2x4xf32, #whole> loc("r")
      %r = nn.matmul %ge, %v {hpc.block = 0 : i64} : tensor<2x4xf32, #whole>, tensor<4x4xf32, #weight> -> tensor<2x4xf32, #whole> loc("r")
      %s = nn.add %q, %r {hpc.block = 1 : i64} : tensor<2x4xf32, #whole>, tensor<2x4xf32, #whole> -> tensor<2x4xf32, #whole> loc("s")
      %u = nn.sigmoid %s {hpc.block = 2 : i64} : tensor<2x4xf32, #whole> -> tensor<2x4xf32, #whole> loc("u")
      %d = nn.mul %u, %gt : tensor<2x4xf32, #whole>, tensor<2x4xf32, #whole> -> tensor<2x4xf32, #whole> loc(fused<"gradient">["q"])
      %f = nn.mul %d, %ge : tensor<2x4xf32, #whole>, tensor<2x4xf32, #whole> -> tensor<2x4xf32, #whole> loc(fused<"gradient">["r"])
      pipe.yield %f : tensor<2x4xf32, #whole>
    }
    return %0 : tensor<2x4xf32, #whole>
  }
}
