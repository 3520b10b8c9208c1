// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-decompose-sharded --hpc-collect-partials --hpc-insert-reshards 2>/dev/null | FileCheck %s

// One reshard for all users that want the same; the one that wants a slice of it takes it from there.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %[[Y:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[FULL:.*]] = dist.reshard %[[Y]] {avoid = "giving up the layout's cut of w", cause = "matmul sums over tp and exp needs the whole sum", hpc.id_of = 1 : i64} {{.*}} -> tensor<2x6xf32, #dist.sharding<"[2, 6]">>
// CHECK: nn.exp %[[FULL]]
// CHECK: nn.softmax %[[FULL]]
// CHECK: %[[PART:.*]] = dist.reshard %[[FULL]] {{.*}} -> tensor<2x6xf32, #dist.sharding<"[2, 6@tp]">>
// CHECK: nn.tanh %[[PART]]
// CHECK-NOT: dist.factors
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x6xf32>, dist.seed = #dist.sharding<"[7@tp, 6]">} : tensor<7x6xf32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x6xf32> -> tensor<2x6xf32>
    %a = nn.exp %y : tensor<2x6xf32> -> tensor<2x6xf32>
    %b = nn.softmax %y : tensor<2x6xf32> -> tensor<2x6xf32>
    %c = nn.tanh %y {dist.seed = #dist.sharding<"[2, 6@tp]">} : tensor<2x6xf32> -> tensor<2x6xf32>
    return %a, %b, %c : tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6xf32>
  }
}

// -----

// Sums over different axes: each resolves before the add.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %[[Y:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[U:.*]] = nn.matmul {{.*}} partial{dp}
// CHECK: %[[A:.*]] = dist.reshard %[[Y]] {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2, 5]">>
// CHECK: %[[B:.*]] = dist.reshard %[[U]] {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2, 5]">>
// CHECK: nn.add %[[A]], %[[B]]
module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32> {dist.seed = #dist.sharding<"[2, 7@tp]">}, %z: tensor<2x6xf32> {dist.seed = #dist.sharding<"[2, 6@dp]">}) -> tensor<2x5xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<6x5xf32>} : tensor<6x5xf32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %z, %v : tensor<2x6xf32>, tensor<6x5xf32> -> tensor<2x5xf32>
    %s = nn.add %y, %u : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    return %s : tensor<2x5xf32>
  }
}
