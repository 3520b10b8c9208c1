// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-verify-propagated 2>/dev/null | FileCheck %s
// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-verify-propagated --hpc-decompose-sharded --hpc-insert-reshards 2>/dev/null | FileCheck %s --check-prefix=RESHARD

// A seed of a value's readers cuts them, and the op sums over the same axis: between them lies a reduce-scatter. A loss, which no result's seed could cut, reads parts of a row.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.matmul {{.*}} -> tensor<2x6xf32, #dist.sharding<"[2, 6] partial{tp}">>
// CHECK: nn.cross_entropy {{.*}}dist.factors = #dist.sharding<"[2, 6@tp]">
// CHECK: nn.exp {{.*}} -> tensor<2x6xf32, #dist.sharding<"[2, 6@tp]">>
// RESHARD-LABEL: dist.mesh = #mesh
// RESHARD: dist.reshard {{.*}}<"[2, 6] partial{tp}">> -> tensor<2x6xf32, #dist.sharding<"[2, 6@tp]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x8xf32>, %labels: tensor<2xi64>) -> (tensor<2xf32>, tensor<2x6xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<8x6xf32>, dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xf32>
    %y = nn.matmul %x, %w {dist.seed = #dist.seed<"[2?, 6]">, dist.read_seed = #dist.seed<"[2?, 6@tp]">} : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %loss, %top, %share = nn.cross_entropy %y, %labels : tensor<2x6xf32>, tensor<2xi64> -> tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    %e = nn.exp %y : tensor<2x6xf32> -> tensor<2x6xf32>
    return %loss, %e : tensor<2xf32>, tensor<2x6xf32>
  }
}

// -----

// The caller is a reader, too: it gets parts, by a reduce-scatter. A value that the user wants whole is whole.
// CHECK-LABEL: dist.mesh = #mesh
// RESHARD-LABEL: dist.mesh = #mesh
// RESHARD: dist.reshard {{.*}}<"[2, 6] partial{tp}">> -> tensor<2x6xf32, #dist.sharding<"[2, 6@tp]">>
// RESHARD: dist.reshard {{.*}}<"[2, 6] partial{tp}">> -> tensor<2x6xf32, #dist.sharding<"[2, 6]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x8xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<8x6xf32>, dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xf32>
    %y = nn.matmul %x, %w {dist.seed = #dist.seed<"[2?, 6]">, dist.read_seed = #dist.seed<"[2?, 6@tp]">} : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %z = nn.matmul %x, %w {dist.seed = #dist.seed<"[2?, 6]">, dist.read_seed = #dist.seed<"[2?, 6@tp]">, dist.whole_output = array<i64: 1>, dist.whole_output_for = "w"} : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    return %y, %z : tensor<2x6xf32>, tensor<2x6xf32>
  }
}

// -----

// Two terms of one sum meet uncut, though the reader of the sum is cut over their ranks: one reduce-scatter for both.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.add {{.*}} -> tensor<2x6xf32, #dist.sharding<"[2, 6] partial{tp}">>
// CHECK: nn.exp {{.*}} -> tensor<2x6xf32, #dist.sharding<"[2, 6@tp]">>
// RESHARD-LABEL: dist.mesh = #mesh
// RESHARD-COUNT-1: dist.reshard
// RESHARD-NOT: dist.reshard
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%a: tensor<2x8xf32>, %b: tensor<2x8xf32>) -> tensor<2x6xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<8x6xf32>, dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xf32>
    %y = nn.matmul %a, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %z = nn.matmul %b, %w : tensor<2x8xf32>, tensor<8x6xf32> -> tensor<2x6xf32>
    %s = nn.add %y, %z : tensor<2x6xf32>, tensor<2x6xf32> -> tensor<2x6xf32>
    %e = nn.exp %s {dist.seed = #dist.seed<"[2?, 6@tp]">} : tensor<2x6xf32> -> tensor<2x6xf32>
    return %e : tensor<2x6xf32>
  }
}
