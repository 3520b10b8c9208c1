// RUN: hpc-opt %s --hpc-propagate-shardings --hpc-insert-reshards=zero=1 2>/dev/null | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: hpc-opt %s --hpc-propagate-shardings --hpc-insert-reshards=zero=2 2>/dev/null | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: hpc-opt %s --hpc-propagate-shardings --hpc-insert-reshards=zero=3 2>/dev/null | FileCheck %s --check-prefixes=CHECK,TWO

// A gradient that is summed over micro-batches and over dp, and cut over dp: from level 2 on it is scattered in each micro-batch, so that what is added up is a piece. Below, or where
// somebody forgets it, every rank would add up the whole gradient. What is not cut in the end (%b, a vector that every rank updates) is added up as it is at any level.
// Either is done where the gradient is made: at the update, all gradients would wait whole.
// CHECK: %[[G:.*]] = nn.matmul %arg0, %arg1 {{.*}} partial{dp, mb}
// TWO: %[[PIECE:.*]] = dist.reshard %[[G]] {{.*}} partial{dp, mb}">> -> tensor<7x6xf32, #dist.sharding<"[7@dp, 6] partial{mb}">>
// TWO: %[[SUM:.*]] = dist.reshard %[[PIECE]] {{.*}} -> tensor<7x6xf32, #dist.sharding<"[7@dp, 6]">>
// ONE: %[[SUM:.*]] = dist.reshard %[[G]] {{.*}} partial{dp, mb}">> -> tensor<7x6xf32, #dist.sharding<"[7@dp, 6]">>
// CHECK: %[[B:.*]] = nn.reduce sum %arg1 {{.*}} partial{dp, mb}
// CHECK: %[[WHOLE:.*]] = dist.reshard %[[B]] {{.*}} partial{dp, mb}">> -> tensor<1x6xf32, #dist.sharding<"[1, 6]">>
// CHECK: nn.sub %arg2, %[[SUM]]
// CHECK: nn.sub %arg3, %[[WHOLE]]
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data, tp=1:tensor">} {
  func.func @main(%x: tensor<8x7xf32> {dist.seed = #dist.seed<"[8@(mb, dp), 7]">}, %y: tensor<8x6xf32> {dist.seed = #dist.seed<"[8@(mb, dp), 6]">},
                  %m: tensor<7x6xf32> {dist.seed = #dist.seed<"[7@dp, 6]">, nn.initial = 0.0 : f64, nn.state = "momentum/w"},
                  %v: tensor<1x6xf32> {dist.seed = #dist.seed<"[1, 6]">, nn.initial = 0.0 : f64, nn.state = "momentum/b"})
      -> (tensor<7x6xf32> {nn.writes = "momentum/w"}, tensor<1x6xf32> {nn.writes = "momentum/b"}) {
    %g = nn.matmul %x, %y {transpose_lhs} : tensor<8x7xf32>, tensor<8x6xf32> -> tensor<7x6xf32>
    %b = nn.reduce sum %y {axes = array<i64: 0>} : tensor<8x6xf32> -> tensor<1x6xf32>
    %n = nn.sub %m, %g : tensor<7x6xf32>, tensor<7x6xf32> -> tensor<7x6xf32>
    %k = nn.sub %v, %b : tensor<1x6xf32>, tensor<1x6xf32> -> tensor<1x6xf32>
    return %n, %k : tensor<7x6xf32>, tensor<1x6xf32>
  }
}
