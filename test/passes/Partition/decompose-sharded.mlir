// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-decompose-sharded --hpc-collect-partials --hpc-insert-reshards --hpc-fill-tails --hpc-localize --hpc-verify-partitioned 2>/dev/null | FileCheck %s

// Softmax over a cut dim: two all-reduces (max, sum) of one number a row.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK-NOT: nn.softmax
// CHECK: nn.reduce max {{.*}} -> tensor<3x1xf32
// CHECK-NEXT: dist.all_reduce {{.*}}max{{.*}} -> tensor<3x1xf32
// CHECK: nn.reduce sum {{.*}} -> tensor<3x1xf32, #dist.sharding<"[3, 1] partial{tp}">>
// CHECK-NEXT: dist.all_reduce {{.*}}sum{{.*}} -> tensor<3x1xf32
// CHECK-NOT: dist.{{all|reduce|permute}}
// CHECK: nn.div {{.*}}hpc.id = 1
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<3x7xf32>) -> tensor<3x7xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[3, 7@tp]">} : tensor<3x7xf32> -> tensor<3x7xf32>
    %s = nn.softmax %a {dist.seed = #dist.sharding<"[3, 7@tp]">} : tensor<3x7xf32> -> tensor<3x7xf32>
    return %s : tensor<3x7xf32>
  }
}

// -----

// Layer norm over a cut uneven dim divides by the true count, 7 and not 8; the filled tail adds nothing.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: dist.fill_tail
// CHECK: nn.reduce sum
// CHECK: nn.constant dense<7.000000e+00> : tensor<f32>
// CHECK: dist.all_reduce
// CHECK: dist.fill_tail
// CHECK: nn.reduce sum
// CHECK: dist.all_reduce
// CHECK-NOT: dist.{{all|reduce|permute}}
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<3x7xf32>) -> tensor<3x7xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[3, 7@tp]">} : tensor<3x7xf32> -> tensor<3x7xf32>
    %s = nn.layer_norm %a {epsilon = 1.0e-5 : f64, dist.seed = #dist.sharding<"[3, 7@tp]">} : tensor<3x7xf32> -> tensor<3x7xf32>
    return %s : tensor<3x7xf32>
  }
}

// -----

// A composite whose rows are whole stays one op; its operand is gathered.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: dist.all_gather
// CHECK-NEXT: {{.*}} = nn.softmax
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<3x7xf32>) -> tensor<3x7xf32> {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[3, 7@tp]">} : tensor<3x7xf32> -> tensor<3x7xf32>
    %s = nn.softmax %a : tensor<3x7xf32> -> tensor<3x7xf32>
    return %s : tensor<3x7xf32>
  }
}

// -----

// A gradient that computes the statistics of a norm again reads those that are there: one all-reduce of the mean, for both, one of the other sum. The differences from the mean,
// as large as the activation, are computed twice: a value of forward that backward reads would be kept.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.reduce sum
// CHECK: %[[MEAN:.*]] = dist.all_reduce
// CHECK: nn.sub %{{.*}}, %[[MEAN]]
// CHECK: nn.reduce sum
// CHECK: dist.all_reduce
// CHECK-NOT: nn.reduce
// CHECK: nn.sub %{{.*}}, %[[MEAN]] {hpc.id
// CHECK-NOT: dist.all_reduce
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[3, 8@tp]">} : tensor<3x8xf32> -> tensor<3x8xf32>
    %s = nn.layer_norm %a {epsilon = 1.0e-5 : f64, dist.seed = #dist.sharding<"[3, 8@tp]">} : tensor<3x8xf32> -> tensor<3x8xf32>
    %sum = nn.reduce sum %a {axes = array<i64: 1>} : tensor<3x8xf32> -> tensor<3x1xf32>
    %count = nn.constant dense<8.0> : tensor<f32> : tensor<f32>
    %mean = nn.div %sum, %count : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
    %centered = nn.sub %a, %mean : tensor<3x8xf32>, tensor<3x1xf32> -> tensor<3x8xf32>
    return %s, %centered : tensor<3x8xf32>, tensor<3x8xf32>
  }
}
