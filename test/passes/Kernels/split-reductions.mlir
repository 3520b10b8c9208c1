// RUN: hpc-opt %s --hpc-split-reductions | FileCheck %s

// The gradient of a bias: blocks of 32 rows, whoever computes them; the mark of the value stays with it.
// CHECK-LABEL: @columns
// CHECK: %[[P:.*]] = nn.reshape %arg0 : tensor<4x256x256xf32> -> tensor<32x32x256xf32>
// CHECK: %[[S:.*]] = nn.reduce sum %[[P]] {axes = array<i64: 1>} : tensor<32x32x256xf32> -> tensor<32x1x256xf32>
// CHECK: nn.reduce sum %[[S]] {axes = array<i64: 0>, hpc.id = 7 : i64} : tensor<32x1x256xf32> -> tensor<1x1x256xf32>
func.func @columns(%x: tensor<4x256x256xf32>) -> tensor<1x1x256xf32> {
  %0 = nn.reduce sum %x {axes = array<i64: 0, 1>, hpc.id = 7 : i64} : tensor<4x256x256xf32> -> tensor<1x1x256xf32>
  return %0 : tensor<1x1x256xf32>
}

// As many blocks as rows can be cut into evenly: at least 8 of 8 rows, at most 64; where dims are kept, they are blocks as well.
// CHECK-LABEL: @blocks
// CHECK: nn.reduce sum %{{.*}} : tensor<8x8x64xf32> -> tensor<8x1x64xf32>
// CHECK: nn.reduce sum %{{.*}} : tensor<10x10x64xf32> -> tensor<10x1x64xf32>
// CHECK: nn.reduce sum %{{.*}} : tensor<64x256x64xf32> -> tensor<64x1x64xf32>
// CHECK: nn.reduce sum %arg3 {axes = array<i64: 1>} : tensor<32x64x64xf32> -> tensor<32x1x64xf32>
func.func @blocks(%a: tensor<64x64xf32>, %b: tensor<100x64xf32>, %c: tensor<16384x64xf32>, %d: tensor<32x64x64xf32>)
    -> (tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<32x1x64xf32>) {
  %0 = nn.reduce sum %a {axes = array<i64: 0>} : tensor<64x64xf32> -> tensor<1x64xf32>
  %1 = nn.reduce sum %b {axes = array<i64: 0>} : tensor<100x64xf32> -> tensor<1x64xf32>
  %2 = nn.reduce sum %c {axes = array<i64: 0>} : tensor<16384x64xf32> -> tensor<1x64xf32>
  %3 = nn.reduce sum %d {axes = array<i64: 1>} : tensor<32x64x64xf32> -> tensor<32x1x64xf32>
  return %0, %1, %2, %3 : tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<32x1x64xf32>
}

// A norm over everything: its rows first. Partial sums of half floats are f32.
// CHECK-LABEL: @all
// CHECK: %[[W:.*]] = nn.cast %arg0 : tensor<128x96xf16> -> tensor<128x96xf32>
// CHECK: %[[R:.*]] = nn.reduce sum %[[W]] {axes = array<i64: 1>} : tensor<128x96xf32> -> tensor<128x1xf32>
// CHECK: %[[S:.*]] = nn.reduce sum %[[R]] {axes = array<i64: 0>} : tensor<128x1xf32> -> tensor<1x1xf32>
// CHECK: nn.cast %[[S]] : tensor<1x1xf32> -> tensor<1x1xf16>
func.func @all(%x: tensor<128x96xf16>) -> tensor<1x1xf16> {
  %0 = nn.reduce sum %x {axes = array<i64: 0, 1>} : tensor<128x96xf16> -> tensor<1x1xf16>
  return %0 : tensor<1x1xf16>
}

// Enough blocks of columns for what is no sum, too few rows, a prime number of rows, nothing at all, rows alone: as they are.
// CHECK-LABEL: @asTheyAre
// CHECK-COUNT-5: nn.reduce
// CHECK-NOT: nn.reduce
func.func @asTheyAre(%a: tensor<1024x4096xf32>, %b: tensor<63x64xf32>, %c: tensor<1021x64xf32>, %d: tensor<0x64xf32>, %e: tensor<4x9000xf32>)
    -> (tensor<1x4096xf32>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<4x1xf32>) {
  %0 = nn.reduce max %a {axes = array<i64: 0>} : tensor<1024x4096xf32> -> tensor<1x4096xf32>
  %1 = nn.reduce sum %b {axes = array<i64: 0>} : tensor<63x64xf32> -> tensor<1x64xf32>
  %2 = nn.reduce sum %c {axes = array<i64: 0>} : tensor<1021x64xf32> -> tensor<1x64xf32>
  %3 = nn.reduce sum %d {axes = array<i64: 0>} : tensor<0x64xf32> -> tensor<1x64xf32>
  %4 = nn.reduce sum %e {axes = array<i64: 1>} : tensor<4x9000xf32> -> tensor<4x1xf32>
  return %0, %1, %2, %3, %4 : tensor<1x4096xf32>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<4x1xf32>
}

// So are dims that do not stand side by side, kept dims or columns of no size, 56 rows (8 blocks of 7), 67 x 71 rows (more than 64 blocks), no matrices at all, 32 of them, and matrices of less than 4,096 elements.
// CHECK-LABEL: @alsoAsTheyAre
// CHECK-NOT: nn.reshape
// CHECK-COUNT-8: nn.reduce
// CHECK-NOT: nn.reduce
// CHECK: return
func.func @alsoAsTheyAre(%a: tensor<64x4x64x16xf32>, %b: tensor<1024x0x64xf32>, %c: tensor<1024x0xf32>, %d: tensor<56x64xf32>, %e: tensor<4757x64xf32>, %f: tensor<0x128x96xf32>, %g: tensor<32x128x96xf32>, %h: tensor<4x32x96xf32>)
    -> (tensor<1x4x1x16xf32>, tensor<1x0x64xf32>, tensor<1x0xf32>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<0x1x1xf32>, tensor<32x1x1xf32>, tensor<4x1x1xf32>) {
  %0 = nn.reduce sum %a {axes = array<i64: 0, 2>} : tensor<64x4x64x16xf32> -> tensor<1x4x1x16xf32>
  %1 = nn.reduce max %b {axes = array<i64: 0>} : tensor<1024x0x64xf32> -> tensor<1x0x64xf32>
  %2 = nn.reduce max %c {axes = array<i64: 0>} : tensor<1024x0xf32> -> tensor<1x0xf32>
  %3 = nn.reduce sum %d {axes = array<i64: 0>} : tensor<56x64xf32> -> tensor<1x64xf32>
  %4 = nn.reduce sum %e {axes = array<i64: 0>} : tensor<4757x64xf32> -> tensor<1x64xf32>
  %5 = nn.reduce max %f {axes = array<i64: 1, 2>} : tensor<0x128x96xf32> -> tensor<0x1x1xf32>
  %6 = nn.reduce sum %g {axes = array<i64: 1, 2>} : tensor<32x128x96xf32> -> tensor<32x1x1xf32>
  %7 = nn.reduce sum %h {axes = array<i64: 1, 2>} : tensor<4x32x96xf32> -> tensor<4x1x1xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<1x4x1x16xf32>, tensor<1x0x64xf32>, tensor<1x0xf32>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<0x1x1xf32>, tensor<32x1x1xf32>, tensor<4x1x1xf32>
}

// One column has no rows to take its sum in with, so there are as many partial sums as threads want; those of bf16 are f32.
// CHECK-LABEL: @column
// CHECK: nn.reduce sum %{{.*}} : tensor<32x128x1xf32> -> tensor<32x1x1xf32>
// CHECK: nn.cast %arg1 : tensor<64x64xbf16> -> tensor<64x64xf32>
// CHECK: nn.reduce sum %{{.*}} : tensor<8x8x64xf32> -> tensor<8x1x64xf32>
func.func @column(%a: tensor<4096x1xf32>, %b: tensor<64x64xbf16>) -> (tensor<1x1xf32>, tensor<1x64xbf16>) {
  %0 = nn.reduce sum %a {axes = array<i64: 0>} : tensor<4096x1xf32> -> tensor<1x1xf32>
  %1 = nn.reduce sum %b {axes = array<i64: 0>} : tensor<64x64xbf16> -> tensor<1x64xbf16>
  return %0, %1 : tensor<1x1xf32>, tensor<1x64xbf16>
}
