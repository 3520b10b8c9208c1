// RUN: hpc-opt %s --hpc-emit-kernels="cpu=x86-64-v3 print-kernels" -o %t 2>&1 | FileCheck %s

// What is told to LLVM of loops, and how a region's rows become them.

// A polynomial's operations wait for each other, so four vectors are computed beside each other, two where four would leave too
// many elements behind them; few operations wait for memory, and LLVM decides.
// CHECK-LABEL: func.func private @long_0.rows
// CHECK: math.fma
// CHECK: } {llvm.loop_annotation = #llvm.loop_annotation<interleave = <count = 4 : i32>>}
// CHECK-LABEL: func.func private @shorter_0.rows
// CHECK: math.fma
// CHECK: } {llvm.loop_annotation = #llvm.loop_annotation<interleave = <count = 2 : i32>>}
// CHECK-LABEL: func.func private @tail_0.rows
// CHECK: math.fma
// CHECK-NOT: llvm.loop_annotation
// CHECK-LABEL: func.func private @few_0.rows
// CHECK-NOT: llvm.loop_annotation

// Sums of blocks of rows: an item is a block, its sums start at 0 and take in each row behind the results of the row itself.
// CHECK-LABEL: func.func private @block_sums_0.rows(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !llvm.ptr {llvm.noalias}, %[[ROWS:[a-z0-9]+]]: !llvm.ptr {llvm.noalias}, %[[SUMS:[a-z0-9]+]]: !llvm.ptr
// CHECK: scf.for %[[ITEM:.*]] = %{{.*}} to %{{.*}} step
// CHECK: scf.for
// CHECK: %[[START:.*]] = llvm.getelementptr %[[SUMS]]
// CHECK: llvm.store %{{.*}}, %[[START]]
// CHECK: scf.for %{{.*}} = %c0_i64{{.*}} to %c8_i64
// CHECK: scf.for %{{.*}} = %c0_i64{{.*}} to %c40_i64
// CHECK: llvm.getelementptr %[[X]]
// CHECK: llvm.getelementptr %[[ROWS]]
// CHECK: arith.addf
// CHECK: llvm.getelementptr %[[SUMS]]

// The maximum of a long row and what lies below it: by groups, and the lanes' sums shrink where a group has a new maximum.
// CHECK-LABEL: func.func private @below_0.rows
// CHECK: scf.for %{{.*}} = %c0_i64{{.*}} to %c4096_i64{{.*}} step %c256_i64{{.*}} iter_args(
// CHECK: arith.cmpf ogt
// CHECK: scf.if
// CHECK: math.fma
// CHECK: } else {
// CHECK: math.fma
// CHECK: arith.addf %{{.*}} : vector<16xf32>
// What is a NaN, or zero, is looked at again.
// CHECK: arith.cmpf uno
// CHECK: scf.if
// CHECK: arith.maxsi
// A row that the nearest cache holds is read twice.
// CHECK-LABEL: func.func private @short_0.rows
// CHECK: arith.maxsi
// CHECK-NOT: scf.if

// A label is compared with positions in 32 bits, whatever it is.
// CHECK-LABEL: func.func private @label_0.rows
// CHECK: %[[HERE:.*]] = arith.cmpi sge, %[[LABEL:.*]], %{{.*}} : i64
// CHECK: %[[NARROW:.*]] = arith.trunci %[[LABEL]] : i64 to i32
// CHECK: %[[WANTED:.*]] = arith.select %{{.*}}, %[[NARROW]], %c-2147483648_i32
// CHECK: arith.cmpi eq, %{{.*}}, %[[WANTED]] : i32

// Sums along rows stay loops of a block of lanes each: unrolled whole, a region of several such sums is slower.
// CHECK-LABEL: func.func private @row_sum_0.rows
// CHECK: scf.for %{{.*}} = %c0_i64{{.*}} to %c3072_i64{{.*}} step %c64_i64{{.*}} iter_args(
// CHECK: } {llvm.loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}

// A row of parts is a loop for each: in one loop every element asked which part it is in, and loads could not be vectors.
// CHECK-LABEL: func.func private @joined_0.rows
// CHECK: scf.for %{{.*}} = %c0_i64{{.*}} to %c96_i64
// CHECK-NOT: arith.select
// CHECK: scf.for %{{.*}} = %c0_i64{{.*}} to %c37_i64
// CHECK-NOT: arith.select
// Parts of a few elements are not worth it.
// CHECK-LABEL: func.func private @rim_0.rows
// CHECK: scf.for %{{.*}} = %c0_i64{{.*}} to %c39_i64
// CHECK: arith.select
func.func @main(%a: tensor<2x3072xf32>, %b: tensor<2x96xf32>, %c: tensor<2x37xf32>, %d: tensor<24x40xf32>, %e: tensor<2x4100xf32>, %l: tensor<2x1xi64>) {
  %0 = nn.fused "long_0" (%a) : (tensor<2x3072xf32>) -> tensor<2x3072xf32> {
  ^bb0(%x: tensor<2x3072xf32>):
    %r = nn.gelu %x : tensor<2x3072xf32> -> tensor<2x3072xf32>
    nn.yield %r : tensor<2x3072xf32>
  }
  %1 = nn.fused "shorter_0" (%b) : (tensor<2x96xf32>) -> tensor<2x96xf32> {
  ^bb0(%x: tensor<2x96xf32>):
    %r = nn.gelu %x : tensor<2x96xf32> -> tensor<2x96xf32>
    nn.yield %r : tensor<2x96xf32>
  }
  %2 = nn.fused "tail_0" (%c) : (tensor<2x37xf32>) -> tensor<2x37xf32> {
  ^bb0(%x: tensor<2x37xf32>):
    %r = nn.gelu %x : tensor<2x37xf32> -> tensor<2x37xf32>
    nn.yield %r : tensor<2x37xf32>
  }
  %3 = nn.fused "few_0" (%a) : (tensor<2x3072xf32>) -> tensor<2x3072xf32> {
  ^bb0(%x: tensor<2x3072xf32>):
    %r = nn.mul %x, %x : tensor<2x3072xf32>, tensor<2x3072xf32> -> tensor<2x3072xf32>
    nn.yield %r : tensor<2x3072xf32>
  }
  %4:2 = nn.fused "block_sums_0" (%d) : (tensor<24x40xf32>) -> (tensor<24x40xf32>, tensor<3x1x40xf32>) {
  ^bb0(%x: tensor<24x40xf32>):
    %y = nn.mul %x, %x : tensor<24x40xf32>, tensor<24x40xf32> -> tensor<24x40xf32>
    %b0 = nn.reshape %y : tensor<24x40xf32> -> tensor<3x8x40xf32>
    %s = nn.reduce sum %b0 {axes = array<i64: 1>} : tensor<3x8x40xf32> -> tensor<3x1x40xf32>
    nn.yield %y, %s : tensor<24x40xf32>, tensor<3x1x40xf32>
  }
  %5:2 = nn.fused "below_0" (%e) : (tensor<2x4100xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>) {
  ^bb0(%x: tensor<2x4100xf32>):
    %m = nn.reduce max %x {axes = array<i64: 1>} : tensor<2x4100xf32> -> tensor<2x1xf32>
    %z = nn.sub %x, %m : tensor<2x4100xf32>, tensor<2x1xf32> -> tensor<2x4100xf32>
    %p = nn.exp %z : tensor<2x4100xf32> -> tensor<2x4100xf32>
    %s = nn.reduce sum %p {axes = array<i64: 1>} : tensor<2x4100xf32> -> tensor<2x1xf32>
    nn.yield %s, %m : tensor<2x1xf32>, tensor<2x1xf32>
  }
  %6 = nn.fused "short_0" (%a) : (tensor<2x3072xf32>) -> tensor<2x1xf32> {
  ^bb0(%x: tensor<2x3072xf32>):
    %m = nn.reduce max %x {axes = array<i64: 1>} : tensor<2x3072xf32> -> tensor<2x1xf32>
    %z = nn.sub %x, %m : tensor<2x3072xf32>, tensor<2x1xf32> -> tensor<2x3072xf32>
    %p = nn.exp %z : tensor<2x3072xf32> -> tensor<2x3072xf32>
    %s = nn.reduce sum %p {axes = array<i64: 1>} : tensor<2x3072xf32> -> tensor<2x1xf32>
    nn.yield %s : tensor<2x1xf32>
  }
  %7 = nn.fused "label_0" (%a, %l) : (tensor<2x3072xf32>, tensor<2x1xi64>) -> tensor<2x3072xf32> {
  ^bb0(%x: tensor<2x3072xf32>, %n: tensor<2x1xi64>):
    %i = nn.iota {dim = 0 : i64} : tensor<3072xi64>
    %o = nn.compare eq %i, %n : tensor<3072xi64>, tensor<2x1xi64> -> tensor<2x3072xi1>
    %z = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %s = nn.select %o, %x, %z : tensor<2x3072xi1>, tensor<2x3072xf32>, tensor<f32> -> tensor<2x3072xf32>
    nn.yield %s : tensor<2x3072xf32>
  }
  %8 = nn.fused "row_sum_0" (%a) : (tensor<2x3072xf32>) -> tensor<2x1xf32> {
  ^bb0(%x: tensor<2x3072xf32>):
    %s = nn.reduce sum %x {axes = array<i64: 1>} : tensor<2x3072xf32> -> tensor<2x1xf32>
    nn.yield %s : tensor<2x1xf32>
  }
  %9 = nn.fused "joined_0" (%b, %c) : (tensor<2x96xf32>, tensor<2x37xf32>) -> tensor<2x133xf32> {
  ^bb0(%x: tensor<2x96xf32>, %y: tensor<2x37xf32>):
    %j = nn.concat %x, %y {axis = 1 : i64} : tensor<2x96xf32>, tensor<2x37xf32> -> tensor<2x133xf32>
    nn.yield %j : tensor<2x133xf32>
  }
  %10 = nn.fused "rim_0" (%c) : (tensor<2x37xf32>) -> tensor<2x39xf32> {
  ^bb0(%y: tensor<2x37xf32>):
    %p = nn.pad %y {low = array<i64: 0, 1>, high = array<i64: 0, 1>, value = 0.0 : f64} : tensor<2x37xf32> -> tensor<2x39xf32>
    nn.yield %p : tensor<2x39xf32>
  }
  return
}
