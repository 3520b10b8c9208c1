// RUN: hpc-opt %s --hpc-annotate-tensor-parallel --split-input-file | FileCheck %s

// Each answer flips if a term of the costs has another sign, another factor, or is missing. An all-reduce of n bytes costs 2 n + 64 KiB. Another layout has to be cheaper by 32 KiB, and may
// leave a tenth more of all work and weights whole.

// Two steps of a recurrent layer. Each rank saves 73,728 bytes of the weight in a step, and the gather of the state costs 65,536 + 768: cut by columns.
// CHECK-LABEL: func.func @main
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[1?, 192@tp]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%h: tensor<1x192xf32>, %x0: tensor<1x192xf32>, %x1: tensor<1x192xf32>) -> tensor<1x192xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 147456, hashes = [1]> : tensor<192x192xf32>
    %m0 = nn.matmul %h, %w : tensor<1x192xf32>, tensor<192x192xf32> -> tensor<1x192xf32>
    %a0 = nn.add %m0, %x0 : tensor<1x192xf32>, tensor<1x192xf32> -> tensor<1x192xf32>
    %h0 = nn.tanh %a0 : tensor<1x192xf32> -> tensor<1x192xf32>
    %m1 = nn.matmul %h0, %w : tensor<1x192xf32>, tensor<192x192xf32> -> tensor<1x192xf32>
    %a1 = nn.add %m1, %x1 : tensor<1x192xf32>, tensor<1x192xf32> -> tensor<1x192xf32>
    %h1 = nn.tanh %a1 : tensor<1x192xf32> -> tensor<1x192xf32>
    return %h1 : tensor<1x192xf32>
  }
}

// -----

// Each rank saves 67,712 bytes, and the gather of 4 rows costs 65,536 + 2,944: whole.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "w"
// CHECK-NOT: @tp
// CHECK: return
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%h: tensor<4x184xf32>, %x0: tensor<4x184xf32>, %x1: tensor<4x184xf32>) -> tensor<4x184xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 135424, hashes = [1]> : tensor<184x184xf32>
    %m0 = nn.matmul %h, %w : tensor<4x184xf32>, tensor<184x184xf32> -> tensor<4x184xf32>
    %a0 = nn.add %m0, %x0 : tensor<4x184xf32>, tensor<4x184xf32> -> tensor<4x184xf32>
    %h0 = nn.tanh %a0 : tensor<4x184xf32> -> tensor<4x184xf32>
    %m1 = nn.matmul %h0, %w : tensor<4x184xf32>, tensor<184x184xf32> -> tensor<4x184xf32>
    %a1 = nn.add %m1, %x1 : tensor<4x184xf32>, tensor<4x184xf32> -> tensor<4x184xf32>
    %h1 = nn.tanh %a1 : tensor<4x184xf32> -> tensor<4x184xf32>
    return %h1 : tensor<4x184xf32>
  }
}

// -----

// With 64 rows the arithmetic counts, not the bytes of the weight: each rank saves 123,904, and the gather costs 110,592: cut.
// CHECK-LABEL: func.func @main
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[64?, 176@tp]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%h: tensor<64x176xf32>, %x0: tensor<64x176xf32>, %x1: tensor<64x176xf32>) -> tensor<64x176xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 123904, hashes = [1]> : tensor<176x176xf32>
    %m0 = nn.matmul %h, %w : tensor<64x176xf32>, tensor<176x176xf32> -> tensor<64x176xf32>
    %a0 = nn.add %m0, %x0 : tensor<64x176xf32>, tensor<64x176xf32> -> tensor<64x176xf32>
    %h0 = nn.tanh %a0 : tensor<64x176xf32> -> tensor<64x176xf32>
    %m1 = nn.matmul %h0, %w : tensor<64x176xf32>, tensor<176x176xf32> -> tensor<64x176xf32>
    %a1 = nn.add %m1, %x1 : tensor<64x176xf32>, tensor<64x176xf32> -> tensor<64x176xf32>
    %h1 = nn.tanh %a1 : tensor<64x176xf32> -> tensor<64x176xf32>
    return %h1 : tensor<64x176xf32>
  }
}

// -----

// Two matmuls of a step read one state, which is gathered once.
// CHECK-LABEL: func.func @main
// CHECK: nn.matmul {{.*}}dist.seed = #dist.seed<"[1?, 136@tp]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%h: tensor<1x136xf32>, %x0: tensor<1x136xf32>, %x1: tensor<1x136xf32>) -> tensor<1x136xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 147968, hashes = [1]> : tensor<136x272xf32>
    %w0 = nn.slice %w {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<136x272xf32> -> tensor<136x136xf32>
    %w1 = nn.slice %w {starts = array<i64: 0, 136>, steps = array<i64: 1, 1>} : tensor<136x272xf32> -> tensor<136x136xf32>
    %p0 = nn.matmul %h, %w0 : tensor<1x136xf32>, tensor<136x136xf32> -> tensor<1x136xf32>
    %q0 = nn.matmul %h, %w1 : tensor<1x136xf32>, tensor<136x136xf32> -> tensor<1x136xf32>
    %m0 = nn.mul %p0, %q0 : tensor<1x136xf32>, tensor<1x136xf32> -> tensor<1x136xf32>
    %a0 = nn.add %m0, %x0 : tensor<1x136xf32>, tensor<1x136xf32> -> tensor<1x136xf32>
    %h0 = nn.tanh %a0 : tensor<1x136xf32> -> tensor<1x136xf32>
    %p1 = nn.matmul %h0, %w0 : tensor<1x136xf32>, tensor<136x136xf32> -> tensor<1x136xf32>
    %q1 = nn.matmul %h0, %w1 : tensor<1x136xf32>, tensor<136x136xf32> -> tensor<1x136xf32>
    %m1 = nn.mul %p1, %q1 : tensor<1x136xf32>, tensor<1x136xf32> -> tensor<1x136xf32>
    %a1 = nn.add %m1, %x1 : tensor<1x136xf32>, tensor<1x136xf32> -> tensor<1x136xf32>
    %h1 = nn.tanh %a1 : tensor<1x136xf32> -> tensor<1x136xf32>
    return %h1 : tensor<1x136xf32>
  }
}

// -----

// Two independent matmuls read each weight: this is no recurrent layer.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "up" {{.*}}dist.seed = #dist.seed<"[40?, 72@tp]">
// CHECK: nn.parameter "down" {{.*}}dist.seed = #dist.seed<"[72@tp, 40?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<4x40xf32>, %y: tensor<4x40xf32>) -> tensor<4x40xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<40x72xf32>
    %down = nn.parameter "down" stored <file = "w", bytes = 11520, hashes = [1]> : tensor<72x40xf32>
    %x0 = nn.matmul %x, %up : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %x1 = nn.relu %x0 : tensor<4x72xf32> -> tensor<4x72xf32>
    %x2 = nn.matmul %x1, %down : tensor<4x72xf32>, tensor<72x40xf32> -> tensor<4x40xf32>
    %y0 = nn.matmul %y, %up : tensor<4x40xf32>, tensor<40x72xf32> -> tensor<4x72xf32>
    %y1 = nn.relu %y0 : tensor<4x72xf32> -> tensor<4x72xf32>
    %y2 = nn.matmul %y1, %down : tensor<4x72xf32>, tensor<72x40xf32> -> tensor<4x40xf32>
    %3 = nn.add %x2, %y2 : tensor<4x40xf32>, tensor<4x40xf32> -> tensor<4x40xf32>
    %4 = nn.softmax %3 : tensor<4x40xf32> -> tensor<4x40xf32>
    return %4 : tensor<4x40xf32>
  }
}

// -----

// Two matmuls read the stem. If its columns are cut, two results of 800 x 24 are all-reduced; if it is whole, two of 800 x 20 after the next matmuls: 51,200 bytes less, more than 32 KiB.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "stem"
// CHECK-NOT: dist.seed
// CHECK: nn.parameter "a" {{.*}}dist.seed = #dist.seed<"[16?, 24@tp]">
// CHECK: nn.parameter "a2" {{.*}}dist.seed = #dist.seed<"[24@tp, 20?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<800x8xf32>) -> (tensor<800x20xf32>, tensor<800x20xf32>) {
    %stem = nn.parameter "stem" stored <file = "w", bytes = 512, hashes = [1]> : tensor<8x16xf32>
    %a = nn.parameter "a" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %a2 = nn.parameter "a2" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %b2 = nn.parameter "b2" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %s = nn.matmul %x, %stem : tensor<800x8xf32>, tensor<8x16xf32> -> tensor<800x16xf32>
    %a0 = nn.matmul %s, %a : tensor<800x16xf32>, tensor<16x24xf32> -> tensor<800x24xf32>
    %a1 = nn.relu %a0 : tensor<800x24xf32> -> tensor<800x24xf32>
    %a3 = nn.matmul %a1, %a2 : tensor<800x24xf32>, tensor<24x20xf32> -> tensor<800x20xf32>
    %a4 = nn.softmax %a3 : tensor<800x20xf32> -> tensor<800x20xf32>
    %b0 = nn.matmul %s, %b : tensor<800x16xf32>, tensor<16x24xf32> -> tensor<800x24xf32>
    %b1 = nn.relu %b0 : tensor<800x24xf32> -> tensor<800x24xf32>
    %b3 = nn.matmul %b1, %b2 : tensor<800x24xf32>, tensor<24x20xf32> -> tensor<800x20xf32>
    %b4 = nn.softmax %b3 : tensor<800x20xf32> -> tensor<800x20xf32>
    return %a4, %b4 : tensor<800x20xf32>, tensor<800x20xf32>
  }
}

// -----

// With 256 rows it is 16,384 bytes less, which is not enough.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "stem" {{.*}}dist.seed = #dist.seed<"[8?, 16@tp]">
// CHECK: nn.parameter "a" {{.*}}dist.seed = #dist.seed<"[16@tp, 24?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<256x8xf32>) -> (tensor<256x20xf32>, tensor<256x20xf32>) {
    %stem = nn.parameter "stem" stored <file = "w", bytes = 512, hashes = [1]> : tensor<8x16xf32>
    %a = nn.parameter "a" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %a2 = nn.parameter "a2" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %b2 = nn.parameter "b2" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %s = nn.matmul %x, %stem : tensor<256x8xf32>, tensor<8x16xf32> -> tensor<256x16xf32>
    %a0 = nn.matmul %s, %a : tensor<256x16xf32>, tensor<16x24xf32> -> tensor<256x24xf32>
    %a1 = nn.relu %a0 : tensor<256x24xf32> -> tensor<256x24xf32>
    %a3 = nn.matmul %a1, %a2 : tensor<256x24xf32>, tensor<24x20xf32> -> tensor<256x20xf32>
    %a4 = nn.softmax %a3 : tensor<256x20xf32> -> tensor<256x20xf32>
    %b0 = nn.matmul %s, %b : tensor<256x16xf32>, tensor<16x24xf32> -> tensor<256x24xf32>
    %b1 = nn.relu %b0 : tensor<256x24xf32> -> tensor<256x24xf32>
    %b3 = nn.matmul %b1, %b2 : tensor<256x24xf32>, tensor<24x20xf32> -> tensor<256x20xf32>
    %b4 = nn.softmax %b3 : tensor<256x20xf32> -> tensor<256x20xf32>
    return %a4, %b4 : tensor<256x20xf32>, tensor<256x20xf32>
  }
}

// -----

// A stem of 64 channels leaves more work and weights whole than the first layout, but by less than a tenth of all.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "stem"
// CHECK-NOT: dist.seed
// CHECK: nn.parameter "a" {{.*}}dist.seed = #dist.seed<"[16?, 24@tp]">
// CHECK: nn.parameter "a2" {{.*}}dist.seed = #dist.seed<"[24@tp, 20?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<800x64xf32>) -> (tensor<800x20xf32>, tensor<800x20xf32>) {
    %stem = nn.parameter "stem" stored <file = "w", bytes = 4096, hashes = [1]> : tensor<64x16xf32>
    %a = nn.parameter "a" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %a2 = nn.parameter "a2" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %b2 = nn.parameter "b2" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %s = nn.matmul %x, %stem : tensor<800x64xf32>, tensor<64x16xf32> -> tensor<800x16xf32>
    %a0 = nn.matmul %s, %a : tensor<800x16xf32>, tensor<16x24xf32> -> tensor<800x24xf32>
    %a1 = nn.relu %a0 : tensor<800x24xf32> -> tensor<800x24xf32>
    %a3 = nn.matmul %a1, %a2 : tensor<800x24xf32>, tensor<24x20xf32> -> tensor<800x20xf32>
    %a4 = nn.softmax %a3 : tensor<800x20xf32> -> tensor<800x20xf32>
    %b0 = nn.matmul %s, %b : tensor<800x16xf32>, tensor<16x24xf32> -> tensor<800x24xf32>
    %b1 = nn.relu %b0 : tensor<800x24xf32> -> tensor<800x24xf32>
    %b3 = nn.matmul %b1, %b2 : tensor<800x24xf32>, tensor<24x20xf32> -> tensor<800x20xf32>
    %b4 = nn.softmax %b3 : tensor<800x20xf32> -> tensor<800x20xf32>
    return %a4, %b4 : tensor<800x20xf32>, tensor<800x20xf32>
  }
}

// -----

// A stem of 51,200 rows stays cut: all ranks would compute it.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "stem" {{.*}}dist.seed = #dist.seed<"[8?, 16@tp]">
// CHECK: nn.parameter "a" {{.*}}dist.seed = #dist.seed<"[16@tp, 24?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<51200x8xf32>) -> (tensor<800x20xf32>, tensor<800x20xf32>) {
    %stem = nn.parameter "stem" stored <file = "w", bytes = 512, hashes = [1]> : tensor<8x16xf32>
    %a = nn.parameter "a" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %a2 = nn.parameter "a2" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %b2 = nn.parameter "b2" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %s0 = nn.matmul %x, %stem : tensor<51200x8xf32>, tensor<8x16xf32> -> tensor<51200x16xf32>
    %s = nn.slice %s0 {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<51200x16xf32> -> tensor<800x16xf32>
    %a0 = nn.matmul %s, %a : tensor<800x16xf32>, tensor<16x24xf32> -> tensor<800x24xf32>
    %a1 = nn.relu %a0 : tensor<800x24xf32> -> tensor<800x24xf32>
    %a3 = nn.matmul %a1, %a2 : tensor<800x24xf32>, tensor<24x20xf32> -> tensor<800x20xf32>
    %a4 = nn.softmax %a3 : tensor<800x20xf32> -> tensor<800x20xf32>
    %b0 = nn.matmul %s, %b : tensor<800x16xf32>, tensor<16x24xf32> -> tensor<800x24xf32>
    %b1 = nn.relu %b0 : tensor<800x24xf32> -> tensor<800x24xf32>
    %b3 = nn.matmul %b1, %b2 : tensor<800x24xf32>, tensor<24x20xf32> -> tensor<800x20xf32>
    %b4 = nn.softmax %b3 : tensor<800x20xf32> -> tensor<800x20xf32>
    return %a4, %b4 : tensor<800x20xf32>, tensor<800x20xf32>
  }
}

// -----

// A stem of 512 channels and one row stays cut: all ranks would hold its weight.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "stem" {{.*}}dist.seed = #dist.seed<"[512?, 16@tp]">
// CHECK: nn.parameter "a" {{.*}}dist.seed = #dist.seed<"[16@tp, 24?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<1x512xf32>, %y: tensor<800x16xf32>) -> (tensor<800x20xf32>, tensor<800x20xf32>) {
    %stem = nn.parameter "stem" stored <file = "w", bytes = 32768, hashes = [1]> : tensor<512x16xf32>
    %a = nn.parameter "a" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %a2 = nn.parameter "a2" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %b2 = nn.parameter "b2" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %s0 = nn.matmul %x, %stem : tensor<1x512xf32>, tensor<512x16xf32> -> tensor<1x16xf32>
    %s = nn.add %y, %s0 : tensor<800x16xf32>, tensor<1x16xf32> -> tensor<800x16xf32>
    %a0 = nn.matmul %s, %a : tensor<800x16xf32>, tensor<16x24xf32> -> tensor<800x24xf32>
    %a1 = nn.relu %a0 : tensor<800x24xf32> -> tensor<800x24xf32>
    %a3 = nn.matmul %a1, %a2 : tensor<800x24xf32>, tensor<24x20xf32> -> tensor<800x20xf32>
    %a4 = nn.softmax %a3 : tensor<800x20xf32> -> tensor<800x20xf32>
    %b0 = nn.matmul %s, %b : tensor<800x16xf32>, tensor<16x24xf32> -> tensor<800x24xf32>
    %b1 = nn.relu %b0 : tensor<800x24xf32> -> tensor<800x24xf32>
    %b3 = nn.matmul %b1, %b2 : tensor<800x24xf32>, tensor<24x20xf32> -> tensor<800x20xf32>
    %b4 = nn.softmax %b3 : tensor<800x20xf32> -> tensor<800x20xf32>
    return %a4, %b4 : tensor<800x20xf32>, tensor<800x20xf32>
  }
}

// -----

// One all-reduce of 100 columns is cheaper than two of 24 columns, though it moves more bytes.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "stem"
// CHECK-NOT: dist.seed
// CHECK: nn.parameter "a" {{.*}}dist.seed = #dist.seed<"[16?, 24@tp]">
// CHECK: nn.parameter "c" {{.*}}dist.seed = #dist.seed<"[24@tp, 100?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<32x8xf32>) -> tensor<32x100xf32> {
    %stem = nn.parameter "stem" stored <file = "w", bytes = 512, hashes = [1]> : tensor<8x16xf32>
    %a = nn.parameter "a" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %c = nn.parameter "c" stored <file = "w", bytes = 9600, hashes = [1]> : tensor<24x100xf32>
    %s = nn.matmul %x, %stem : tensor<32x8xf32>, tensor<8x16xf32> -> tensor<32x16xf32>
    %a0 = nn.matmul %s, %a : tensor<32x16xf32>, tensor<16x24xf32> -> tensor<32x24xf32>
    %b0 = nn.matmul %s, %b : tensor<32x16xf32>, tensor<16x24xf32> -> tensor<32x24xf32>
    %m0 = nn.mul %a0, %b0 : tensor<32x24xf32>, tensor<32x24xf32> -> tensor<32x24xf32>
    %m = nn.relu %m0 : tensor<32x24xf32> -> tensor<32x24xf32>
    %c0 = nn.matmul %m, %c : tensor<32x24xf32>, tensor<24x100xf32> -> tensor<32x100xf32>
    %y = nn.softmax %c0 : tensor<32x100xf32> -> tensor<32x100xf32>
    return %y : tensor<32x100xf32>
  }
}

// -----

// If the two results are added, they share one all-reduce: 24 columns are cheaper than 100.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "stem" {{.*}}dist.seed = #dist.seed<"[8?, 16@tp]">
// CHECK: nn.parameter "a" {{.*}}dist.seed = #dist.seed<"[16@tp, 24?]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<32x8xf32>) -> tensor<32x100xf32> {
    %stem = nn.parameter "stem" stored <file = "w", bytes = 512, hashes = [1]> : tensor<8x16xf32>
    %a = nn.parameter "a" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %c = nn.parameter "c" stored <file = "w", bytes = 9600, hashes = [1]> : tensor<24x100xf32>
    %s = nn.matmul %x, %stem : tensor<32x8xf32>, tensor<8x16xf32> -> tensor<32x16xf32>
    %a0 = nn.matmul %s, %a : tensor<32x16xf32>, tensor<16x24xf32> -> tensor<32x24xf32>
    %b0 = nn.matmul %s, %b : tensor<32x16xf32>, tensor<16x24xf32> -> tensor<32x24xf32>
    %m0 = nn.add %a0, %b0 : tensor<32x24xf32>, tensor<32x24xf32> -> tensor<32x24xf32>
    %m = nn.relu %m0 : tensor<32x24xf32> -> tensor<32x24xf32>
    %c0 = nn.matmul %m, %c : tensor<32x24xf32>, tensor<24x100xf32> -> tensor<32x100xf32>
    %y = nn.softmax %c0 : tensor<32x100xf32> -> tensor<32x100xf32>
    return %y : tensor<32x100xf32>
  }
}

// -----

// A weight whose result is added to a sum is cut by rows and shares its all-reduce; then the head needs none.
// CHECK-LABEL: func.func @main
// CHECK: nn.parameter "p" {{.*}}dist.seed = #dist.seed<"[16@tp, 20?]">
// CHECK: nn.parameter "t" {{.*}}dist.seed = #dist.seed<"[20?, 12@tp]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%x: tensor<36x16xf32>) -> tensor<36x12xf32> {
    %up = nn.parameter "up" stored <file = "w", bytes = 1536, hashes = [1]> : tensor<16x24xf32>
    %q = nn.parameter "q" stored <file = "w", bytes = 1920, hashes = [1]> : tensor<24x20xf32>
    %p = nn.parameter "p" stored <file = "w", bytes = 1280, hashes = [1]> : tensor<16x20xf32>
    %t = nn.parameter "t" stored <file = "w", bytes = 960, hashes = [1]> : tensor<20x12xf32>
    %x0 = nn.relu %x : tensor<36x16xf32> -> tensor<36x16xf32>
    %u = nn.matmul %x0, %up : tensor<36x16xf32>, tensor<16x24xf32> -> tensor<36x24xf32>
    %r = nn.relu %u : tensor<36x24xf32> -> tensor<36x24xf32>
    %d = nn.matmul %r, %q : tensor<36x24xf32>, tensor<24x20xf32> -> tensor<36x20xf32>
    %c = nn.matmul %x0, %p : tensor<36x16xf32>, tensor<16x20xf32> -> tensor<36x20xf32>
    %s = nn.add %d, %c : tensor<36x20xf32>, tensor<36x20xf32> -> tensor<36x20xf32>
    %y = nn.matmul %s, %t : tensor<36x20xf32>, tensor<20x12xf32> -> tensor<36x12xf32>
    return %y : tensor<36x12xf32>
  }
}
