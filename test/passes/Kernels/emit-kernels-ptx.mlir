// RUN: hpc-opt %s --hpc-emit-kernels > %t.1
// RUN: hpc-opt %s --hpc-emit-kernels > %t.2
// RUN: cmp %t.1 %t.2
// RUN: FileCheck %s --check-prefix=LAUNCH --input-file=%t.1
// RUN: sed -n -e '/hpc\.ptx = "/{' -e 's/.*hpc\.ptx = "//' -e 's/\\0A/\n/g' -e 's/\\09/ /g' -e 'p' -e '}' %t.1 > %t.ptx
// RUN: FileCheck %s --check-prefix=ELEMENTS --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=LONG --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=ROWS --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=WARPS --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=COLUMNS --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=ALL --input-file=%t.ptx

// The launch follows from the shape: neighbours a thread, a block a row, four warps with a row each, a block for 32 columns.
// LAUNCH: nn.fused "add_6x768_0"{{.*}} {launch = array<i64: 5, 256, 0>, rows = 6
// LAUNCH: nn.fused "softmax_6x768_0"{{.*}} {launch = array<i64: 6, 128, {{[0-9]+}}>, rows = 6
// LAUNCH: nn.fused "norm_6x33_0"{{.*}} {launch = array<i64: 2, 128, 0>, rows = 6
// LAUNCH: nn.fused "sum_1x96_0"{{.*}} {launch = array<i64: 3, 1024, 4096>, rows = 2

// No atomics, whose order nobody knows; nothing that a library would have to define; no card that is too new.
// ALL-NOT: atom.
// ALL-NOT: {{[ \t]}}red.
// ALL-NOT: .extern .func
// ALL: .version 8.0
// ALL: .target sm_80
// ALL-NOT: atom.
// ALL-NOT: {{[ \t]}}red.
// ALL-NOT: .extern .func

// Four neighbours in one access of 16 bytes, and two nodes' product and sum that no fma takes together.
// ELEMENTS: .entry add_6x768_0(
// ELEMENTS: .reqntid 256
// ELEMENTS-NOT: ld.global.nc.b32
// ELEMENTS: ld.global.nc.v4
// ELEMENTS: ld.global.nc.v4
// ELEMENTS: mul.rn.f32
// ELEMENTS: add.rn.f32
// ELEMENTS: st.global.v4
// ELEMENTS: ret;

// The same where an element takes many instructions, of which LLVM would unroll no loop.
// LONG: .entry gelu_6x64_0(
// LONG-NOT: ld.global.nc.b32
// LONG: ld.global.nc.v4
// LONG-NOT: bra
// LONG-COUNT-4: div.rn.f32
// LONG: ld.global.nc.v4
// LONG-NOT: bra
// LONG-COUNT-4: div.rn.f32
// LONG-NOT: st.global.b16
// LONG: st.global.v4
// LONG: ret;

// A row is read once and stays in registers through maximum and sum, which are joined by shuffles, then in shared memory.
// ROWS: .entry softmax_6x768_0(
// ROWS: .reqntid 128
// ROWS-COUNT-6: ld.global.nc
// ROWS-NOT: ld.global
// ROWS-COUNT-5: shfl.sync.bfly
// ROWS-NOT: ld.global
// ROWS: bar.sync
// ROWS-NOT: ld.global
// ROWS-COUNT-5: shfl.sync.bfly
// ROWS-NOT: ld.global
// ROWS: bar.sync
// ROWS-NOT: ld.global
// ROWS: ret;

// A warp needs no barrier.
// WARPS: .entry norm_6x33_0(
// WARPS-NOT: bar.sync
// WARPS-COUNT-5: shfl.sync.bfly
// WARPS-NOT: bar.sync
// WARPS: ret;

// Lanes of rows, one barrier, then the first lane's sum of them.
// COLUMNS: .entry sum_1x96_0(
// COLUMNS: .reqntid 1024
// COLUMNS: ld.global
// COLUMNS: st.shared
// COLUMNS: bar.sync
// COLUMNS-NOT: bar.sync
// COLUMNS: ld.shared
// COLUMNS: st.global
// COLUMNS: ret;
module attributes {hpc.target = "ptx"} {
func.func @main(%x: tensor<6x768xf32>, %y: tensor<6x768xf32>, %b: tensor<768xf32>, %n: tensor<6x33xf32>, %t: tensor<512x96xf32>, %g: tensor<6x64xf32>)
    -> (tensor<6x768xf32>, tensor<6x768xf32>, tensor<6x33xf32>, tensor<1x96xf32>, tensor<6x64xbf16>) {
  %0 = nn.fused "add_6x768_0" (%x, %y, %b) : (tensor<6x768xf32>, tensor<6x768xf32>, tensor<768xf32>) -> tensor<6x768xf32> {
  ^bb0(%a: tensor<6x768xf32>, %c: tensor<6x768xf32>, %d: tensor<768xf32>):
    %1 = nn.mul %a, %c : tensor<6x768xf32>, tensor<6x768xf32> -> tensor<6x768xf32>
    %2 = nn.add %1, %d : tensor<6x768xf32>, tensor<768xf32> -> tensor<6x768xf32>
    nn.yield %2 : tensor<6x768xf32>
  }
  %3 = nn.fused "softmax_6x768_0" (%x) : (tensor<6x768xf32>) -> tensor<6x768xf32> {
  ^bb0(%a: tensor<6x768xf32>):
    %1 = nn.softmax %a : tensor<6x768xf32> -> tensor<6x768xf32>
    nn.yield %1 : tensor<6x768xf32>
  }
  %4 = nn.fused "norm_6x33_0" (%n) : (tensor<6x33xf32>) -> tensor<6x33xf32> {
  ^bb0(%a: tensor<6x33xf32>):
    %1 = nn.layer_norm %a {epsilon = 1.0e-5 : f64} : tensor<6x33xf32> -> tensor<6x33xf32>
    nn.yield %1 : tensor<6x33xf32>
  }
  %5 = nn.fused "sum_1x96_0" (%t) : (tensor<512x96xf32>) -> tensor<1x96xf32> {
  ^bb0(%a: tensor<512x96xf32>):
    %1 = nn.reduce sum %a {axes = array<i64: 0>} : tensor<512x96xf32> -> tensor<1x96xf32>
    nn.yield %1 : tensor<1x96xf32>
  }
  %6 = nn.fused "gelu_6x64_0" (%g) : (tensor<6x64xf32>) -> tensor<6x64xbf16> {
  ^bb0(%a: tensor<6x64xf32>):
    %1 = nn.gelu %a {tanh_approximation} : tensor<6x64xf32> -> tensor<6x64xf32>
    %2 = nn.cast %1 : tensor<6x64xf32> -> tensor<6x64xbf16>
    nn.yield %2 : tensor<6x64xbf16>
  }
  return %0, %3, %4, %5, %6 : tensor<6x768xf32>, tensor<6x768xf32>, tensor<6x33xf32>, tensor<1x96xf32>, tensor<6x64xbf16>
}
}
