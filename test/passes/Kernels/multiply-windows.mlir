// RUN: hpc-opt %s -split-input-file --hpc-multiply-windows | FileCheck %s

// The columns of a convolution would be nine times its image.
// CHECK-LABEL: @convolution
// CHECK: nn.pad %arg0 {{{.*}}hpc.implicit
// CHECK: nn.window {{.*}}hpc.implicit
func.func @convolution(%x: tensor<2x3x8x8xf32>, %w: tensor<5x27xf32>) -> tensor<2x5x64xf32> {
  %p = nn.pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 0.0 : f32} : tensor<2x3x8x8xf32> -> tensor<2x3x10x10xf32>
  %v = nn.window %p {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : tensor<2x3x10x10xf32> -> tensor<2x3x3x3x8x8xf32>
  %k = nn.reshape %v : tensor<2x3x3x3x8x8xf32> -> tensor<2x27x64xf32>
  %y = nn.matmul %w, %k : tensor<5x27xf32>, tensor<2x27x64xf32> -> tensor<2x5x64xf32>
  return %y : tensor<2x5x64xf32>
}

// -----

// Its gradient reads the same windows, transposed; groups are leading dims.
// CHECK-LABEL: @gradient
// CHECK: nn.window {{.*}}hpc.implicit
func.func @gradient(%x: tensor<2x6x9xf32>, %w: tensor<2x4x9xf32>, %g: tensor<2x2x4x7xf32>) -> (tensor<2x2x4x7xf32>, tensor<2x2x4x9xf32>) {
  %v = nn.window %x {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<2x6x9xf32> -> tensor<2x6x3x7xf32>
  %k = nn.reshape %v : tensor<2x6x3x7xf32> -> tensor<2x2x9x7xf32>
  %y = nn.matmul %w, %k : tensor<2x4x9xf32>, tensor<2x2x9x7xf32> -> tensor<2x2x4x7xf32>
  %d = nn.matmul %g, %k {transpose_rhs} : tensor<2x2x4x7xf32>, tensor<2x2x9x7xf32> -> tensor<2x2x4x9xf32>
  return %y, %d : tensor<2x2x4x7xf32>, tensor<2x2x4x9xf32>
}

// -----

// What anything else reads has to be in memory: a result, a left operand, a reduction, rows that are no channels.
// CHECK-LABEL: @others
// CHECK-NOT: hpc.implicit
func.func @others(%x: tensor<4x8xf32>, %w: tensor<5x12xf32>, %u: tensor<6x5xf32>, %z: tensor<5x6xf32>) -> (tensor<5x6xf32>, tensor<12x6xf32>, tensor<12x5xf32>, tensor<4x1x6xf32>, tensor<5x12xf32>) {
  %a = nn.window %x {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<4x8xf32> -> tensor<4x3x6xf32>
  %b = nn.reshape %a : tensor<4x3x6xf32> -> tensor<12x6xf32>
  %y = nn.matmul %w, %b : tensor<5x12xf32>, tensor<12x6xf32> -> tensor<5x6xf32>
  %c = nn.window %x {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<4x8xf32> -> tensor<4x3x6xf32>
  %d = nn.reshape %c : tensor<4x3x6xf32> -> tensor<12x6xf32>
  %l = nn.matmul %d, %u : tensor<12x6xf32>, tensor<6x5xf32> -> tensor<12x5xf32>
  %e = nn.window %x {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<4x8xf32> -> tensor<4x3x6xf32>
  %s = nn.reduce sum %e {axes = array<i64: 1>} : tensor<4x3x6xf32> -> tensor<4x1x6xf32>
  %f = nn.window %x {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<4x8xf32> -> tensor<4x3x6xf32>
  %g = nn.reshape %f : tensor<4x3x6xf32> -> tensor<6x12xf32>
  %h = nn.matmul %z, %g : tensor<5x6xf32>, tensor<6x12xf32> -> tensor<5x12xf32>
  return %y, %b, %l, %s, %h : tensor<5x6xf32>, tensor<12x6xf32>, tensor<12x5xf32>, tensor<4x1x6xf32>, tensor<5x12xf32>
}

// -----

// A padding that is no zero, one that others read, one of channels: the windows lie in the padded image.
// CHECK-LABEL: @paddings
// CHECK-NOT: nn.pad {{.*}}hpc.implicit
// CHECK: nn.pad {{.*}}value = 1.0
// CHECK-NEXT: nn.window {{.*}}hpc.implicit
// CHECK-NOT: nn.pad {{.*}}hpc.implicit
// CHECK: return
func.func @paddings(%x: tensor<4x8xf32>, %w: tensor<5x12xf32>, %u: tensor<5x18xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>, tensor<4x10xf32>, tensor<5x6xf32>) {
  %o = nn.pad %x {low = array<i64: 0, 1>, high = array<i64: 0, 1>, value = 1.0 : f32} : tensor<4x8xf32> -> tensor<4x10xf32>
  %a = nn.window %o {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<4x10xf32> -> tensor<4x3x8xf32>
  %b = nn.reshape %a : tensor<4x3x8xf32> -> tensor<12x8xf32>
  %y = nn.matmul %w, %b : tensor<5x12xf32>, tensor<12x8xf32> -> tensor<5x8xf32>
  %p = nn.pad %x {low = array<i64: 0, 1>, high = array<i64: 0, 1>, value = 0.0 : f32} : tensor<4x8xf32> -> tensor<4x10xf32>
  %c = nn.window %p {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<4x10xf32> -> tensor<4x3x8xf32>
  %d = nn.reshape %c : tensor<4x3x8xf32> -> tensor<12x8xf32>
  %z = nn.matmul %w, %d : tensor<5x12xf32>, tensor<12x8xf32> -> tensor<5x8xf32>
  %q = nn.pad %x {low = array<i64: 1, 0>, high = array<i64: 1, 0>, value = 0.0 : f32} : tensor<4x8xf32> -> tensor<6x8xf32>
  %e = nn.window %q {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<6x8xf32> -> tensor<6x3x6xf32>
  %f = nn.reshape %e : tensor<6x3x6xf32> -> tensor<18x6xf32>
  %v = nn.matmul %u, %f : tensor<5x18xf32>, tensor<18x6xf32> -> tensor<5x6xf32>
  return %y, %z, %p, %v : tensor<5x8xf32>, tensor<5x8xf32>, tensor<4x10xf32>, tensor<5x6xf32>
}

// -----

// A sum over each window by itself is a product of few rows.
// CHECK-LABEL: @depthwise
// CHECK: nn.window {{.*}}hpc.implicit
// CHECK: %[[W:.*]] = nn.reshape %arg1 : tensor<6x2x3x1xf32> -> tensor<6x2x3xf32>
// CHECK: %[[X:.*]] = nn.reshape {{.*}} -> tensor<2x6x3x8xf32>
// CHECK: %[[Y:.*]] = nn.matmul %[[W]], %[[X]] : tensor<6x2x3xf32>, tensor<2x6x3x8xf32> -> tensor<2x6x2x8xf32>
// CHECK: nn.reshape %[[Y]] : tensor<2x6x2x8xf32> -> tensor<2x6x2x1x8xf32>
// CHECK-NOT: nn.reduce
func.func @depthwise(%x: tensor<2x6x10xf32>, %w: tensor<6x2x3x1xf32>) -> tensor<2x6x2x1x8xf32> {
  %v = nn.window %x {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<2x6x10xf32> -> tensor<2x6x3x8xf32>
  %r = nn.reshape %v : tensor<2x6x3x8xf32> -> tensor<2x6x1x3x8xf32>
  %m = nn.mul %r, %w : tensor<2x6x1x3x8xf32>, tensor<6x2x3x1xf32> -> tensor<2x6x2x3x8xf32>
  %s = nn.reduce sum %m {axes = array<i64: 3>} : tensor<2x6x2x3x8xf32> -> tensor<2x6x2x1x8xf32>
  return %s : tensor<2x6x2x1x8xf32>
}

// -----

// Not so where the weight differs by position, a maximum is taken, other dims are summed, or the windows are read twice.
// CHECK-LABEL: @no_depthwise
// CHECK-NOT: nn.matmul
func.func @no_depthwise(%x: tensor<2x6x10xf32>, %w: tensor<6x1x3x1xf32>, %u: tensor<6x1x3x8xf32>) -> (tensor<2x6x1x1x8xf32>, tensor<2x6x1x1x8xf32>, tensor<2x6x1x3x1xf32>, tensor<2x6x1x1x8xf32>, tensor<2x6x1x3x8xf32>) {
  %a = nn.window %x {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<2x6x10xf32> -> tensor<2x6x3x8xf32>
  %b = nn.reshape %a : tensor<2x6x3x8xf32> -> tensor<2x6x1x3x8xf32>
  %c = nn.mul %b, %u : tensor<2x6x1x3x8xf32>, tensor<6x1x3x8xf32> -> tensor<2x6x1x3x8xf32>
  %d = nn.reduce sum %c {axes = array<i64: 3>} : tensor<2x6x1x3x8xf32> -> tensor<2x6x1x1x8xf32>
  %e = nn.window %x {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<2x6x10xf32> -> tensor<2x6x3x8xf32>
  %f = nn.reshape %e : tensor<2x6x3x8xf32> -> tensor<2x6x1x3x8xf32>
  %g = nn.mul %f, %w : tensor<2x6x1x3x8xf32>, tensor<6x1x3x1xf32> -> tensor<2x6x1x3x8xf32>
  %h = nn.reduce max %g {axes = array<i64: 3>} : tensor<2x6x1x3x8xf32> -> tensor<2x6x1x1x8xf32>
  %i = nn.window %x {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<2x6x10xf32> -> tensor<2x6x3x8xf32>
  %j = nn.reshape %i : tensor<2x6x3x8xf32> -> tensor<2x6x1x3x8xf32>
  %k = nn.mul %j, %w : tensor<2x6x1x3x8xf32>, tensor<6x1x3x1xf32> -> tensor<2x6x1x3x8xf32>
  %l = nn.reduce sum %k {axes = array<i64: 4>} : tensor<2x6x1x3x8xf32> -> tensor<2x6x1x3x1xf32>
  %m = nn.window %x {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<2x6x10xf32> -> tensor<2x6x3x8xf32>
  %n = nn.reshape %m : tensor<2x6x3x8xf32> -> tensor<2x6x1x3x8xf32>
  %o = nn.mul %n, %w : tensor<2x6x1x3x8xf32>, tensor<6x1x3x1xf32> -> tensor<2x6x1x3x8xf32>
  %p = nn.reduce sum %o {axes = array<i64: 3>} : tensor<2x6x1x3x8xf32> -> tensor<2x6x1x1x8xf32>
  return %d, %h, %l, %p, %n : tensor<2x6x1x1x8xf32>, tensor<2x6x1x1x8xf32>, tensor<2x6x1x3x1xf32>, tensor<2x6x1x1x8xf32>, tensor<2x6x1x3x8xf32>
}

// -----

// The products of a device read memory.
// CHECK-LABEL: module attributes {hpc.target = "x86-64,ptx"}
// CHECK-NOT: hpc.implicit
// CHECK: nn.window
module attributes {hpc.target = "x86-64,ptx"} {
  func.func @device(%x: tensor<4x8xf32>, %w: tensor<5x12xf32>) -> tensor<5x6xf32> {
    %a = nn.window %x {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<4x8xf32> -> tensor<4x3x6xf32>
    %b = nn.reshape %a : tensor<4x3x6xf32> -> tensor<12x6xf32>
    %y = nn.matmul %w, %b : tensor<5x12xf32>, tensor<12x6xf32> -> tensor<5x6xf32>
    return %y : tensor<5x6xf32>
  }
}
