// RUN: hpc-opt %s --hpc-propagate-shardings --hpc-decompose-sharded --hpc-collect-partials --hpc-insert-reshards --split-input-file | FileCheck %s

// Two partial sums with a full value between them share one all-reduce; the root keeps its id.
// CHECK: %[[Y:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[U:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[P:.*]] = nn.add %[[Y]], %[[U]] {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2, 5] partial{tp}">>
// CHECK: %[[R:.*]] = dist.reshard %[[P]]
// CHECK: nn.add %[[R]], %arg1 {hpc.id = 5 : i64}
// CHECK-NOT: dist.reshard
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32>, %z: tensor<2x5xf32>) -> tensor<2x5xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %s = nn.add %y, %z : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %x, %v : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %r = nn.add %s, %u : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    return %r : tensor<2x5xf32>
  }
}

// -----

// A residual whose sum a norm needs too is whole anyway: the branches' sums share the other all-reduce, whatever the order of the adds.
// CHECK: %[[E:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: dist.reshard %[[E]]
// CHECK: %[[Y:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[U:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[P:.*]] = nn.add %[[Y]], %[[U]] {{.*}} partial{tp}
// CHECK: dist.reshard %[[P]]
// CHECK-NOT: dist.reshard
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %t = nn.parameter "t" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %e = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %n = nn.softmax %e : tensor<2x5xf32> -> tensor<2x5xf32>
    %y = nn.matmul %x, %v : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %s = nn.add %e, %y : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %x, %t : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %r = nn.add %s, %u : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    return %n, %r : tensor<2x5xf32>, tensor<2x5xf32>
  }
}

// -----

// Terms that are scaled after their biases (experts that a router mixes): both parts are scaled, so that the sums meet before anything needs them whole.
// CHECK: %[[Y:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[U:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[A:.*]] = nn.mul {{.*}} partial{tp}
// CHECK: %[[B:.*]] = nn.mul {{.*}} partial{tp}
// CHECK: %[[P:.*]] = nn.add %[[A]], %[[B]] {{.*}} partial{tp}
// CHECK: dist.reshard %[[P]]
// CHECK-NOT: dist.reshard
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32>, %g: tensor<2x1xf32>, %h: tensor<2x1xf32>) -> tensor<2x5xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %b = nn.parameter "b" {value = dense<1.0> : tensor<5xf32>} : tensor<5xf32>
    %c = nn.parameter "c" {value = dense<1.0> : tensor<5xf32>} : tensor<5xf32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %y1 = nn.add %y, %b : tensor<2x5xf32>, tensor<5xf32> -> tensor<2x5xf32>
    %y2 = nn.mul %y1, %g : tensor<2x5xf32>, tensor<2x1xf32> -> tensor<2x5xf32>
    %u = nn.matmul %x, %v : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %u1 = nn.add %c, %u : tensor<5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    %u2 = nn.mul %h, %u1 : tensor<2x1xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    %s = nn.add %y2, %u2 : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    return %s : tensor<2x5xf32>
  }
}

// -----

// A bias that is smaller than the sum, even times its scale, is scaled as it is; a scaled part of a scaled part, too.
// CHECK: %[[Y:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[U:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[Y1:.*]] = nn.mul %[[Y]], %arg1 {{.*}} partial{tp}
// CHECK: %[[Y2:.*]] = nn.mul %arg2, %[[Y1]] {{.*}} partial{tp}
// CHECK: %[[P:.*]] = nn.add %[[Y2]], %[[U]] {{.*}} partial{tp}
// CHECK: %[[R:.*]] = dist.reshard %[[P]]
// CHECK: nn.add %[[R]],
// CHECK: %[[B1:.*]] = nn.mul %{{.*}}, %arg1 {{.*}} -> tensor<5xf32, #dist.sharding<"[5]">>
// CHECK: nn.mul %arg2, %[[B1]] {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2, 5]">>
// CHECK-NOT: dist.reshard
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32>, %g: tensor<f32>, %h: tensor<2x1xf32>) -> tensor<2x5xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %b = nn.parameter "b" {value = dense<1.0> : tensor<5xf32>} : tensor<5xf32>
    %c = nn.parameter "c" {value = dense<1.0> : tensor<5xf32>} : tensor<5xf32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %y1 = nn.add %y, %b : tensor<2x5xf32>, tensor<5xf32> -> tensor<2x5xf32>
    %y2 = nn.mul %y1, %g : tensor<2x5xf32>, tensor<f32> -> tensor<2x5xf32>
    %y3 = nn.add %c, %y2 : tensor<5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    %y4 = nn.mul %h, %y3 : tensor<2x1xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %x, %v : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %s = nn.add %y4, %u : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    return %s : tensor<2x5xf32>
  }
}

// -----

// A partial sum times a number, as a gradient times the factor of its loss, is summed before it is scaled: behind it, the scaled sum would be written for those who
// read it. Where a reader takes the partial as it is, as the sum with another partial does, it stays one.
// CHECK: %[[Y:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[U:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[R:.*]] = dist.reshard %[[Y]]
// CHECK: nn.mul %[[R]], %arg2
// CHECK: %[[S:.*]] = nn.mul %[[U]], %arg2 {{.*}} partial{tp}
// CHECK: nn.neg %[[S]] {{.*}} partial{tp}
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32>, %z: tensor<2x7xf32>, %f: tensor<f32>) -> (tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %z, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %s = nn.mul %y, %f : tensor<2x5xf32>, tensor<f32> -> tensor<2x5xf32>
    %e = nn.exp %s : tensor<2x5xf32> -> tensor<2x5xf32>
    %t = nn.mul %u, %f : tensor<2x5xf32>, tensor<f32> -> tensor<2x5xf32>
    %n = nn.neg %t : tensor<2x5xf32> -> tensor<2x5xf32>
    return %s, %e, %n : tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  }
}

// -----

// The sum is cut over the axis over which its terms are partial: they are added first, and scattered once. The sum inside is cut nowhere.
// CHECK: %[[Y:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[U:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[P:.*]] = nn.add %[[Y]], %[[U]] {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2, 5] partial{tp}">>
// CHECK: %[[R:.*]] = dist.reshard %[[P]] {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2@tp, 5]">>
// CHECK: nn.add %[[R]], %{{.*}} -> tensor<2x5xf32, #dist.sharding<"[2@tp, 5]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32>, %z: tensor<2x5xf32>) -> tensor<2x5xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %s = nn.add %y, %z {dist.seed = #dist.sharding<"[2@tp, 5]">} : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %x, %v : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %r = nn.add %s, %u {dist.seed = #dist.sharding<"[2@tp, 5]">} : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    return %r : tensor<2x5xf32>
  }
}

// -----

// Without other terms nothing is added after the scatter.
// CHECK: %[[P:.*]] = nn.add {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2, 5] partial{tp}">>
// CHECK: %[[R:.*]] = dist.reshard %[[P]] {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2@tp, 5]">>
// CHECK: return %[[R]]
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32>) -> tensor<2x5xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %x, %v : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %r = nn.add %y, %u {dist.seed = #dist.sharding<"[2@tp, 5]">} : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    return %r : tensor<2x5xf32>
  }
}
