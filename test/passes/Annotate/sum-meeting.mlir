// RUN: hpc-opt %s --hpc-annotate-tensor-parallel --split-input-file | FileCheck %s

// The shortcut's weight is cut by rows if its all-reduce can be shared. Each case after the first differs in one condition, which alone refuses that.

// The shortcut is scaled and reshaped, the other term gets a bias and is scaled; their sum takes one all-reduce.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "shortcut" {{.*}}dist.seed = #dist.seed<"[16@tp, 20?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x16xf32>, %k: tensor<f32>, %z: tensor<4x9x20xf32>, %bias: tensor<20xf32>) -> tensor<4x9x20xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %x0 = nn.relu %x : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x0, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %n = nn.add %d, %bias : tensor<4x9x20xf32>, tensor<20xf32> -> tensor<4x9x20xf32>
    %e = nn.mul %n, %k : tensor<4x9x20xf32>, tensor<f32> -> tensor<4x9x20xf32>
    %g = nn.mul %c, %k : tensor<4x9x20xf32>, tensor<f32> -> tensor<4x9x20xf32>
    %h = nn.reshape %g : tensor<4x9x20xf32> -> tensor<36x20xf32>
    %i = nn.reshape %h : tensor<36x20xf32> -> tensor<4x9x20xf32>
    %s = nn.add %e, %i : tensor<4x9x20xf32>, tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %y = nn.softmax %s : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    return %y : tensor<4x9x20xf32>
  }
}

// -----

// The shortcut is added to an input.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "shortcut"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<16x20xf32>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x16xf32>, %k: tensor<f32>, %z: tensor<4x9x20xf32>, %bias: tensor<20xf32>) -> (tensor<4x9x20xf32>, tensor<4x9x20xf32>) {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %x0 = nn.relu %x : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x0, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %s = nn.add %c, %z : tensor<4x9x20xf32>, tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %y = nn.softmax %s : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %v = nn.softmax %d : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    return %y, %v : tensor<4x9x20xf32>, tensor<4x9x20xf32>
  }
}

// -----

// Another op reads the shortcut, too.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "shortcut"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<16x20xf32>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x16xf32>, %k: tensor<f32>, %z: tensor<4x9x20xf32>, %bias: tensor<20xf32>) -> (tensor<4x9x20xf32>, tensor<4x9x20xf32>) {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %x0 = nn.relu %x : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x0, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %v = nn.softmax %c : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %s = nn.add %d, %c : tensor<4x9x20xf32>, tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %y = nn.softmax %s : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    return %y, %v : tensor<4x9x20xf32>, tensor<4x9x20xf32>
  }
}

// -----

// Another op reads the other term, too.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "shortcut"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<16x20xf32>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x16xf32>, %k: tensor<f32>, %z: tensor<4x9x20xf32>, %bias: tensor<20xf32>) -> (tensor<4x9x20xf32>, tensor<4x9x20xf32>) {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %x0 = nn.relu %x : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x0, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %s = nn.add %d, %c : tensor<4x9x20xf32>, tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %y = nn.softmax %s : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %v = nn.softmax %d : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    return %y, %v : tensor<4x9x20xf32>, tensor<4x9x20xf32>
  }
}

// -----

// The shortcut is reduced before the add.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "shortcut"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<16x20xf32>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x16xf32>, %k: tensor<f32>, %z: tensor<4x9x20xf32>, %bias: tensor<20xf32>) -> tensor<4x9x20xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %x0 = nn.relu %x : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x0, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %g = nn.reduce sum %c {axes = array<i64: 1>} : tensor<4x9x20xf32> -> tensor<4x1x20xf32>
    %s = nn.add %d, %g : tensor<4x9x20xf32>, tensor<4x1x20xf32> -> tensor<4x9x20xf32>
    %y = nn.softmax %s : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    return %y : tensor<4x9x20xf32>
  }
}

// -----

// An input is subtracted from the shortcut before the add.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "shortcut"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<16x20xf32>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x16xf32>, %k: tensor<f32>, %z: tensor<4x9x20xf32>, %bias: tensor<20xf32>) -> tensor<4x9x20xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %x0 = nn.relu %x : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x0, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %g = nn.sub %c, %z : tensor<4x9x20xf32>, tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %s = nn.add %d, %g : tensor<4x9x20xf32>, tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    %y = nn.softmax %s : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
    return %y : tensor<4x9x20xf32>
  }
}

// -----

// A bias is added to the shortcut before the reshape: the all-reduce would sum it up, too.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "shortcut"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<16x20xf32>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x16xf32>, %k: tensor<f32>, %z: tensor<4x9x20xf32>, %bias: tensor<20xf32>) -> tensor<36x20xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %x0 = nn.relu %x : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x0, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %g = nn.add %c, %bias : tensor<4x9x20xf32>, tensor<20xf32> -> tensor<4x9x20xf32>
    %h = nn.reshape %g : tensor<4x9x20xf32> -> tensor<36x20xf32>
    %i = nn.reshape %d : tensor<4x9x20xf32> -> tensor<36x20xf32>
    %s = nn.add %h, %i : tensor<36x20xf32>, tensor<36x20xf32> -> tensor<36x20xf32>
    %y = nn.softmax %s : tensor<36x20xf32> -> tensor<36x20xf32>
    return %y : tensor<36x20xf32>
  }
}

// -----

// A bias is added to the other term before its reshape.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "shortcut"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<16x20xf32>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x16xf32>, %k: tensor<f32>, %z: tensor<4x9x20xf32>, %bias: tensor<20xf32>) -> tensor<36x20xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %x0 = nn.relu %x : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x0, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %g = nn.add %d, %bias : tensor<4x9x20xf32>, tensor<20xf32> -> tensor<4x9x20xf32>
    %h = nn.reshape %g : tensor<4x9x20xf32> -> tensor<36x20xf32>
    %i = nn.reshape %c : tensor<4x9x20xf32> -> tensor<36x20xf32>
    %s = nn.add %h, %i : tensor<36x20xf32>, tensor<36x20xf32> -> tensor<36x20xf32>
    %y = nn.softmax %s : tensor<36x20xf32> -> tensor<36x20xf32>
    return %y : tensor<36x20xf32>
  }
}

// -----

// The same with a scale between the two.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "shortcut"
// CHECK-NOT: dist.seed
// CHECK-SAME: : tensor<16x20xf32>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x9x16xf32>, %k: tensor<f32>, %z: tensor<4x9x20xf32>, %bias: tensor<20xf32>) -> tensor<36x20xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %shortcut = nn.parameter "shortcut" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %x0 = nn.relu %x : tensor<4x9x16xf32> -> tensor<4x9x16xf32>
    %u = nn.matmul %x0, %up : tensor<4x9x16xf32>, tensor<16x24xf32> -> tensor<4x9x24xf32>
    %r = nn.relu %u : tensor<4x9x24xf32> -> tensor<4x9x24xf32>
    %d = nn.matmul %r, %down : tensor<4x9x24xf32>, tensor<24x20xf32> -> tensor<4x9x20xf32>
    %c = nn.matmul %x0, %shortcut : tensor<4x9x16xf32>, tensor<16x20xf32> -> tensor<4x9x20xf32>
    %g = nn.add %d, %bias : tensor<4x9x20xf32>, tensor<20xf32> -> tensor<4x9x20xf32>
    %j = nn.mul %g, %k : tensor<4x9x20xf32>, tensor<f32> -> tensor<4x9x20xf32>
    %h = nn.reshape %j : tensor<4x9x20xf32> -> tensor<36x20xf32>
    %i = nn.reshape %c : tensor<4x9x20xf32> -> tensor<36x20xf32>
    %s = nn.add %h, %i : tensor<36x20xf32>, tensor<36x20xf32> -> tensor<36x20xf32>
    %y = nn.softmax %s : tensor<36x20xf32> -> tensor<36x20xf32>
    return %y : tensor<36x20xf32>
  }
}
