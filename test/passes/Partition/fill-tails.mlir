// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-insert-reshards --hpc-fill-tails | FileCheck %s

// An uneven contraction: the activation is filled, the parameter is zero in its padding already. An even one reads no padding.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %[[T:.*]] = nn.tanh
// CHECK: %[[F:.*]] = dist.fill_tail %[[T]] {dims = array<i64: 1>, hpc.id_of = {{.*}}, value = 0.000000e+00 : f32}
// CHECK: nn.matmul %[[F]], %{{[0-9]+}} {
// CHECK: %[[E:.*]] = nn.exp
// CHECK: nn.matmul %[[E]]
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32>, %z: tensor<2x6xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<6x5xf32>, dist.seed = #dist.sharding<"[6@tp, 5]">} : tensor<6x5xf32>
    %t = nn.tanh %x : tensor<2x7xf32> -> tensor<2x7xf32>
    %y = nn.matmul %t, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %e = nn.exp %z : tensor<2x6xf32> -> tensor<2x6xf32>
    %u = nn.matmul %e, %v : tensor<2x6xf32>, tensor<6x5xf32> -> tensor<2x5xf32>
    return %y, %u : tensor<2x5xf32>, tensor<2x5xf32>
  }
}

// -----

// Min of integers: the highest value; inputs are zero in their padding, which is no identity of min.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %[[F:.*]] = dist.fill_tail %arg0 {dims = array<i64: 0>, value = 2147483647 : i32}
// CHECK: nn.reduce min %[[F]]
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<7xi32> {dist.seed = #dist.sharding<"[7@tp]">}) -> tensor<1xi32> {
    %m = nn.reduce min %x {axes = array<i64: 0>} : tensor<7xi32> -> tensor<1xi32>
    return %m : tensor<1xi32>
  }
}

// -----

// The highest i64 has no double: 2^63 - 1, not 2^63 - 1024. Unsigned ones and booleans have their own.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: dist.fill_tail %{{.*}} value = 9223372036854775807 : i64}
// CHECK: dist.fill_tail %{{.*}} value = 255 : ui8}
// CHECK: dist.fill_tail %{{.*}} value = true}
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<7xi64> {dist.seed = #dist.sharding<"[7@tp]">}, %y: tensor<7xui8> {dist.seed = #dist.sharding<"[7@tp]">}, %z: tensor<7xi1> {dist.seed = #dist.sharding<"[7@tp]">}) -> (tensor<1xi64>, tensor<1xui8>, tensor<1xi1>) {
    %a = nn.reduce min %x {axes = array<i64: 0>} : tensor<7xi64> -> tensor<1xi64>
    %b = nn.reduce min %y {axes = array<i64: 0>} : tensor<7xui8> -> tensor<1xui8>
    %c = nn.reduce min %z {axes = array<i64: 0>} : tensor<7xi1> -> tensor<1xi1>
    return %a, %b, %c : tensor<1xi64>, tensor<1xui8>, tensor<1xi1>
  }
}

// -----

// The padding of a weight that the step writes is what the last step left there: filled, unlike that of one which is only read.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: dist.fill_tail %{{.*}} value = 0.000000e+00 : f32} : tensor<2x7xf32
// CHECK: dist.fill_tail %{{.*}} value = 0.000000e+00 : f32} : tensor<7x5xf32
// CHECK: nn.matmul
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32>) -> (tensor<2x5xf32>, tensor<7x5xf32> {nn.writes = "w"}) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %t = nn.tanh %x : tensor<2x7xf32> -> tensor<2x7xf32>
    %y = nn.matmul %t, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %w1 = nn.exp %w : tensor<7x5xf32> -> tensor<7x5xf32>
    return %y, %w1 : tensor<2x5xf32>, tensor<7x5xf32>
  }
}
