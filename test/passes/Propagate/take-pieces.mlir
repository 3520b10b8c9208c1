// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-verify-propagated 2>/dev/null | FileCheck %s

// A sum over tp that a seed scatters over rows: the reduction over rows reads the pieces too, so its own sum is partial, and nothing all-reduces the rows.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.reduce sum {{.*}}: tensor<4x6xf32, #dist.sharding<"[4, 6] partial{tp}">> -> tensor<1x6xf32, #dist.sharding<"[1, 6] partial{tp}">>
// CHECK: nn.mul {{.*}} -> tensor<4x6xf32, #dist.sharding<"[4@tp, 6]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4x8xf32>, %k: tensor<4x6xf32>) -> (tensor<1x6xf32>, tensor<4x6xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<8x6xf32>, dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xf32>
    %y = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
    %b = nn.reduce sum %y {axes = array<i64: 0>} : tensor<4x6xf32> -> tensor<1x6xf32>
    %s = nn.mul %y, %k {dist.seed = #dist.sharding<"[4@tp, 6]">} : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
    return %b, %s : tensor<1x6xf32>, tensor<4x6xf32>
  }
}

// -----

// Where another reader needs the rows whole, or the reduction is a maximum, it reads them whole.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.reduce sum {{.*}} -> tensor<1x6xf32, #dist.sharding<"[1, 6]">>
// CHECK: nn.reduce max {{.*}} -> tensor<1x6xf32, #dist.sharding<"[1, 6]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4x8xf32>, %k: tensor<4x6xf32>) -> (tensor<1x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<1x6xf32>, tensor<4x6xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<8x6xf32>, dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xf32>
    %y = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
    %b = nn.reduce sum %y {axes = array<i64: 0>} : tensor<4x6xf32> -> tensor<1x6xf32>
    %s = nn.mul %y, %k {dist.seed = #dist.sharding<"[4@tp, 6]">} : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
    %y1 = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
    %b1 = nn.reduce max %y1 {axes = array<i64: 0>} : tensor<4x6xf32> -> tensor<1x6xf32>
    %s1 = nn.mul %y1, %k {dist.seed = #dist.sharding<"[4@tp, 6]">} : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
    return %b, %s, %y, %b1, %s1 : tensor<1x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<1x6xf32>, tensor<4x6xf32>
  }
}
