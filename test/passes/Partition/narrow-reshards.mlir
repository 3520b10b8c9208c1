// RUN: hpc-opt %s --hpc-propagate-shardings --hpc-insert-reshards --hpc-narrow-reshards --split-input-file | FileCheck %s

// A weight that only a product reads, and in 16 bits, is rounded where it is stored: half the bytes are gathered, and the numbers are the same.
// CHECK-LABEL: func.func @gathered
// CHECK: %[[W:.*]] = nn.parameter
// CHECK-NEXT: %[[NARROW:.*]] = nn.cast %[[W]] {hpc.id = {{.*}}} : tensor<8x6xf32, #dist.sharding<"[8@dp, 6]">> -> tensor<8x6xbf16, #dist.sharding<"[8@dp, 6]">>
// CHECK: %[[WHOLE:.*]] = dist.reshard %[[NARROW]] {{.*}} -> tensor<8x6xbf16
// CHECK-NEXT: nn.matmul %{{.*}}, %[[WHOLE]]
module attributes {dist.mesh = #dist.mesh<"dp=2:data">} {
  func.func @gathered() { return }
  func.func @main(%x: tensor<4x8xbf16> {dist.seed = #dist.sharding<"[4@dp, 8]">}) -> tensor<4x6xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 192, hashes = [1]> {dist.seed = #dist.sharding<"[8@dp, 6]">} : tensor<8x6xf32>
    %n = nn.cast %w : tensor<8x6xf32> -> tensor<8x6xbf16>
    %y = nn.matmul %x, %n : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}

// -----

// Somebody reads all bits of it: it is gathered once, as it is.
// CHECK-LABEL: func.func @read_twice
// CHECK: %[[W:.*]] = nn.parameter
// CHECK: %[[WHOLE:.*]] = dist.reshard %[[W]] {{.*}} -> tensor<8x6xf32
// CHECK-NOT: dist.reshard
// CHECK: nn.cast %[[WHOLE]]
// CHECK-NOT: dist.reshard
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"dp=2:data">} {
  func.func @read_twice() { return }
  func.func @main(%x: tensor<4x8xbf16> {dist.seed = #dist.sharding<"[4@dp, 8]">}, %z: tensor<4x8x6xf32> {dist.seed = #dist.sharding<"[4@dp, 8, 6]">}) -> (tensor<4x6xf32>, tensor<4x8x6xf32>) {
    %w = nn.parameter "w" stored <file = "w", bytes = 192, hashes = [1]> {dist.seed = #dist.sharding<"[8@dp, 6]">} : tensor<8x6xf32>
    %n = nn.cast %w : tensor<8x6xf32> -> tensor<8x6xbf16>
    %y = nn.matmul %x, %n : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
    %s = nn.add %z, %w : tensor<4x8x6xf32>, tensor<8x6xf32> -> tensor<4x8x6xf32>
    return %y, %s : tensor<4x6xf32>, tensor<4x8x6xf32>
  }
}

// -----

// Each rank's term of a product of a bf16 weight is rounded, and what arrives is widened. Of two products the sum is rounded.
// CHECK-LABEL: func.func @terms
// CHECK: %[[ONE:.*]] = nn.matmul {{.*}} -> tensor<4x6xf32, #dist.sharding<"[4, 6] partial{tp}">>
// CHECK-NEXT: %[[TERM:.*]] = nn.cast %[[ONE]] {nn.rounds_terms} : {{.*}} -> tensor<4x6xbf16, #dist.sharding<"[4, 6] partial{tp}">>
// CHECK: %[[SUM:.*]] = dist.reshard %[[TERM]] {{.*}} -> tensor<4x6xbf16, #dist.sharding<"[4, 6]">>
// CHECK: %[[WIDE:.*]] = nn.cast %[[SUM]] : tensor<4x6xbf16, {{.*}} -> tensor<4x6xf32
// CHECK: %[[TWO:.*]] = nn.add {{.*}} : tensor<4x6xf32, #dist.sharding<"[4, 6] partial{tp}">>
// CHECK-NEXT: %[[ROUNDED:.*]] = nn.cast %[[TWO]] {nn.rounds_terms} : {{.*}} -> tensor<4x6xbf16, #dist.sharding<"[4, 6] partial{tp}">>
// CHECK: dist.reshard %[[ROUNDED]]
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @terms() { return }
  func.func @main(%x: tensor<4x8xbf16> {dist.seed = #dist.sharding<"[4, 8@tp]">}) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
    %v = nn.parameter "v" stored <file = "w", bytes = 96, hashes = [1]> {dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xbf16>
    %w = nn.parameter "w" stored <file = "w", bytes = 96, hashes = [1]> {dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xbf16>
    %one = nn.matmul %x, %v : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
    %y = nn.matmul %x, %w : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
    %z = nn.matmul %x, %v : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
    %two = nn.add %y, %z : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
    return %one, %two : tensor<4x6xf32>, tensor<4x6xf32>
  }
}

// -----

// No rounding of terms in f16, whose range they may leave; nor over data, where weights' gradients are added up; nor of two activations.
// CHECK-LABEL: func.func @wide
// CHECK-NOT: nn.cast
// CHECK-NOT: -> tensor<{{[^-]*}}bf16
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=2:tensor">} {
  func.func @wide() { return }
  func.func @main(%x: tensor<4x8xf16> {dist.seed = #dist.sharding<"[4, 8@tp]">}, %a: tensor<4x8xbf16> {dist.seed = #dist.sharding<"[4@dp, 8]">}, %g: tensor<4x6xbf16> {dist.seed = #dist.sharding<"[4@dp, 6]">},
                  %p: tensor<4x8xbf16> {dist.seed = #dist.sharding<"[4, 8@tp]">}, %q: tensor<8x6xbf16> {dist.seed = #dist.sharding<"[8@tp, 6]">}) -> (tensor<4x6xf32>, tensor<8x6xf32>, tensor<4x6xf32>) {
    %w = nn.parameter "w" stored <file = "w", bytes = 96, hashes = [1]> {dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xf16>
    %0 = nn.matmul %x, %w : tensor<4x8xf16>, tensor<8x6xf16> -> tensor<4x6xf32>
    %1 = nn.matmul %a, %g {transpose_lhs} : tensor<4x8xbf16>, tensor<4x6xbf16> -> tensor<8x6xf32>
    %2 = nn.matmul %p, %q : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
    return %0, %1, %2 : tensor<4x6xf32>, tensor<8x6xf32>, tensor<4x6xf32>
  }
}

// -----

// Whole numbers are exact in bf16, and their sum in f32; it is read in f64, so nothing rounds its terms.
// CHECK-LABEL: func.func @whole_numbers
// CHECK: nn.matmul {{.*}} -> tensor<4x6xf32, #dist.sharding<"[4, 6] partial{tp}">>
// CHECK-NOT: nn.rounds_terms
// CHECK: dist.reshard {{.*}} -> tensor<24xf64, #dist.sharding<"[24]">>
// CHECK-NOT: nn.rounds_terms
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @whole_numbers() { return }
  func.func @main(%x: tensor<4x8xbf16> {dist.seed = #dist.sharding<"[4, 8@tp]">}) -> tensor<24xi32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 96, hashes = [1]> {dist.seed = #dist.sharding<"[8@tp, 6]">} : tensor<8x6xbf16>
    %y = nn.matmul %x, %w : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
    %shape = nn.reshape %y {dist.seed = #dist.sharding<"[24]">} : tensor<4x6xf32> -> tensor<24xf32>
    %wide = nn.cast %shape : tensor<24xf32> -> tensor<24xf64>
    %whole = nn.cast %wide : tensor<24xf64> -> tensor<24xi32>
    return %whole : tensor<24xi32>
  }
}
