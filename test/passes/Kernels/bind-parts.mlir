// RUN: hpc-opt %s --hpc-bind-parts --split-input-file | FileCheck %s

// Queries and keys of one stored weight, the queries cut over tp: a rank would hold all 48 columns and copy its own in every step. The weight itself is not held at all.
// CHECK-LABEL: @fused
// CHECK-NOT: nn.slice
// CHECK-NOT: dist.slice
// CHECK: %[[Q:.*]] = nn.parameter "w" stored <{{.*}}shape = [32, 48], starts = [0, 0]> : tensor<32x16xf32, #dist.sharding<"[32, (4@tp, 8)]">>
// CHECK: %[[K:.*]] = nn.parameter "w" stored <{{.*}}shape = [32, 48], starts = [0, 32]> : tensor<32x16xf32, #dist.sharding<"[32, 16]">>
// CHECK: nn.matmul {{.*}}, %[[Q]]
// CHECK: nn.matmul {{.*}}, %[[K]]
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=3:tensor">} {
  func.func @fused(%x: tensor<6x32xf32, #dist.sharding<"[6, 32]">>) -> (tensor<6x16xf32, #dist.sharding<"[6, (4@tp, 8)]">>, tensor<6x16xf32, #dist.sharding<"[6, 16]">>) {
    %w = nn.parameter "w" stored <file = "f", bytes = 6144, hashes = [1]> : tensor<32x48xf32, #dist.sharding<"[32, 48]">>
    %0 = nn.slice %w {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<32x48xf32, #dist.sharding<"[32, 48]">> -> tensor<32x32xf32, #dist.sharding<"[32, 32]">>
    %1 = dist.slice %0 {after = #dist.sharding<"[32, (4@tp, 8)]">, axis = "tp", before = #dist.sharding<"[32, 32]">, to_dim = 1 : i64, to_sub = 0 : i64} : tensor<32x32xf32, #dist.sharding<"[32, 32]">> -> tensor<32x16xf32, #dist.sharding<"[32, (4@tp, 8)]">>
    %2 = nn.slice %w {starts = array<i64: 0, 32>, steps = array<i64: 1, 1>} : tensor<32x48xf32, #dist.sharding<"[32, 48]">> -> tensor<32x16xf32, #dist.sharding<"[32, 16]">>
    %q = nn.matmul %x, %1 : tensor<6x32xf32, #dist.sharding<"[6, 32]">>, tensor<32x16xf32, #dist.sharding<"[32, (4@tp, 8)]">> -> tensor<6x16xf32, #dist.sharding<"[6, (4@tp, 8)]">>
    %k = nn.matmul %x, %2 : tensor<6x32xf32, #dist.sharding<"[6, 32]">>, tensor<32x16xf32, #dist.sharding<"[32, 16]">> -> tensor<6x16xf32, #dist.sharding<"[6, 16]">>
    return %q, %k : tensor<6x16xf32, #dist.sharding<"[6, (4@tp, 8)]">>, tensor<6x16xf32, #dist.sharding<"[6, 16]">>
  }
}

// -----

// The first half of a weight can be cut as a slice is, so a rank takes its cut of the weight first, and the slice's own start is local.
// CHECK-LABEL: @halves
// CHECK-NOT: nn.slice
// CHECK: nn.parameter "w" stored <{{.*}}shape = [64], starts = [0]> : tensor<16xf32, #dist.sharding<"[32@tp]">>
// CHECK: nn.parameter "w" stored <{{.*}}shape = [64], starts = [32]> : tensor<16xf32, #dist.sharding<"[32@tp]">>
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @halves() -> (tensor<16xf32, #dist.sharding<"[32@tp]">>, tensor<16xf32, #dist.sharding<"[32@tp]">>) {
    %w = nn.parameter "w" stored <file = "f", bytes = 256, hashes = [1]> : tensor<64xf32, #dist.sharding<"[64]">>
    %0 = dist.slice %w {after = #dist.sharding<"[(2, 32@tp)]">, axis = "tp", before = #dist.sharding<"[64]">, to_dim = 0 : i64, to_sub = 1 : i64} : tensor<64xf32, #dist.sharding<"[64]">> -> tensor<32xf32, #dist.sharding<"[(2, 32@tp)]">>
    %1 = nn.slice %0 {starts = array<i64: 0>, steps = array<i64: 1>} : tensor<32xf32, #dist.sharding<"[(2, 32@tp)]">> -> tensor<16xf32, #dist.sharding<"[32@tp]">>
    %2 = nn.slice %0 {hpc.global = {starts = array<i64: 32>}, starts = array<i64: 16>, steps = array<i64: 1>} : tensor<32xf32, #dist.sharding<"[(2, 32@tp)]">> -> tensor<16xf32, #dist.sharding<"[32@tp]">>
    return %1, %2 : tensor<16xf32, #dist.sharding<"[32@tp]">>, tensor<16xf32, #dist.sharding<"[32@tp]">>
  }
}

// -----

// A start that the cut's inner sub-dim does not divide has no view of what is stored: the part is bound whole, and cut as before.
// CHECK-LABEL: @offset
// CHECK: %[[P:.*]] = nn.parameter "w" stored <{{.*}}shape = [48], starts = [4]> : tensor<32xf32
// CHECK: dist.slice %[[P]]
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=3:tensor">} {
  func.func @offset() -> (tensor<16xf32, #dist.sharding<"[(4@tp, 8)]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<12xf32, #dist.sharding<"[12]">>) {
    %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1]> : tensor<48xf32, #dist.sharding<"[48]">>
    %0 = nn.slice %w {starts = array<i64: 4>, steps = array<i64: 1>} : tensor<48xf32, #dist.sharding<"[48]">> -> tensor<32xf32, #dist.sharding<"[32]">>
    %1 = dist.slice %0 {after = #dist.sharding<"[(4@tp, 8)]">, axis = "tp", before = #dist.sharding<"[32]">, to_dim = 0 : i64, to_sub = 0 : i64} : tensor<32xf32, #dist.sharding<"[32]">> -> tensor<16xf32, #dist.sharding<"[(4@tp, 8)]">>
    %2 = nn.slice %w {starts = array<i64: 0>, steps = array<i64: 1>} : tensor<48xf32, #dist.sharding<"[48]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    %3 = nn.slice %w {starts = array<i64: 36>, steps = array<i64: 1>} : tensor<48xf32, #dist.sharding<"[48]">> -> tensor<12xf32, #dist.sharding<"[12]">>
    return %1, %2, %3 : tensor<16xf32, #dist.sharding<"[(4@tp, 8)]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<12xf32, #dist.sharding<"[12]">>
  }
}

// -----

// What a step writes lies in one buffer, of which a part is a copy; every second element is no range; and of a table of positions of which a sequence reads
// the first the plan would lack the rest.
// CHECK-LABEL: @main
// CHECK-COUNT-4: nn.slice
// CHECK-NOT: part_starts
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=1:tensor">} {
  func.func @main() -> (tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>,
                        tensor<4xf32, #dist.sharding<"[4]">>, tensor<8xf32, #dist.sharding<"[8]">> {nn.writes = "w"}) {
    %w = nn.parameter "w" stored <file = "f", bytes = 32, hashes = [1]> : tensor<8xf32, #dist.sharding<"[8]">>
    %v = nn.parameter "v" stored <file = "f", bytes = 32, hashes = [1]> : tensor<8xf32, #dist.sharding<"[8]">>
    %p = nn.parameter "p" stored <file = "f", bytes = 32, hashes = [1]> : tensor<8xf32, #dist.sharding<"[8]">>
    %0 = nn.slice %w {starts = array<i64: 0>, steps = array<i64: 1>} : tensor<8xf32, #dist.sharding<"[8]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    %1 = nn.slice %w {starts = array<i64: 4>, steps = array<i64: 1>} : tensor<8xf32, #dist.sharding<"[8]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    %2 = nn.slice %v {starts = array<i64: 0>, steps = array<i64: 2>} : tensor<8xf32, #dist.sharding<"[8]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    %3 = nn.slice %p {starts = array<i64: 0>, steps = array<i64: 1>} : tensor<8xf32, #dist.sharding<"[8]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    %4 = nn.neg %v : tensor<8xf32, #dist.sharding<"[8]">> -> tensor<8xf32, #dist.sharding<"[8]">>
    return %0, %1, %2, %3, %4 : tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>,
                                tensor<4xf32, #dist.sharding<"[4]">>, tensor<8xf32, #dist.sharding<"[8]">>
  }
}

// -----

// Each differs from a weight that is bound in parts in one thing: two parts that meet, though together they have as many elements as it; every second element
// of each half; a part that is one already.
// CHECK-LABEL: @others
// CHECK: nn.parameter "a" {{.*}} : tensor<8xf32
// CHECK: nn.parameter "b" {{.*}} : tensor<8xf32
// CHECK: nn.parameter "c" stored <{{.*}}shape = [16], starts = [0]> : tensor<8xf32
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data">} {
  func.func @others() -> (tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>) {
    %a = nn.parameter "a" stored <file = "f", bytes = 32, hashes = [1]> : tensor<8xf32, #dist.sharding<"[8]">>
    %a0 = nn.slice %a {starts = array<i64: 0>, steps = array<i64: 1>} : tensor<8xf32, #dist.sharding<"[8]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    %a1 = nn.slice %a {starts = array<i64: 2>, steps = array<i64: 1>} : tensor<8xf32, #dist.sharding<"[8]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    %b = nn.parameter "b" stored <file = "f", bytes = 32, hashes = [1]> : tensor<8xf32, #dist.sharding<"[8]">>
    %b0 = nn.slice %b {starts = array<i64: 0>, steps = array<i64: 2>} : tensor<8xf32, #dist.sharding<"[8]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    %b1 = nn.slice %b {starts = array<i64: 4>, steps = array<i64: 1>} : tensor<8xf32, #dist.sharding<"[8]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    %c = nn.parameter "c" stored <file = "f", bytes = 64, hashes = [1], shape = [16], starts = [0]> : tensor<8xf32, #dist.sharding<"[8]">>
    %c0 = nn.slice %c {starts = array<i64: 0>, steps = array<i64: 1>} : tensor<8xf32, #dist.sharding<"[8]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    %c1 = nn.slice %c {starts = array<i64: 4>, steps = array<i64: 1>} : tensor<8xf32, #dist.sharding<"[8]">> -> tensor<4xf32, #dist.sharding<"[4]">>
    return %a0, %a1, %b0, %b1, %c0, %c1 : tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>, tensor<4xf32, #dist.sharding<"[4]">>
  }
}
