// RUN: hpc-opt %s --split-input-file --hpc-annotate-zero=level=1 | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: hpc-opt %s --split-input-file --hpc-annotate-zero=level=3 | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: hpc-opt %s --split-input-file --hpc-annotate-zero | FileCheck %s --check-prefix=ZERO
// RUN: hpc-opt %s --split-input-file --hpc-annotate-zero=level=1 2>&1 >/dev/null | FileCheck %s --check-prefix=ALONE

// Both states of a matrix are cut over dp along the dim that tensor parallelism leaves, though 5 rows over 2 ranks are uneven; the parameter is stored whole over dp for
// level 1, cut as its states are for level 3. Who forgets to close the dim of a whole parameter lets its states cut it too, which is level 3 by accident.
// Level 0 gives a state no more than its parameter's own cut.
// ZERO-NOT: {{(func.func.*@dp.*adam.m/w|parameter "w".*@dp|parameter "row".*@dp|parameter "large".*@dp)}}
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<5x7xf32> {dist.seed = #dist.seed<"[5@dp, 7@tp]">, {{.*}}nn.state = "adam.m/w"}
// CHECK-SAME: %arg1: tensor<5x7xf32> {dist.seed = #dist.seed<"[5@dp, 7@tp]">, {{.*}}nn.state = "adam.v/w"}
// A vector follows the products that tp cuts: it stays as it is. A state that is of no parameter is nobody's business.
// CHECK-SAME: %arg2: tensor<7xf32> {nn.initial
// CHECK-SAME: %arg3: tensor<4x4xf32> {nn.initial
// A dim with fewer rows than ranks has no room; one that nothing seeds is taken.
// CHECK-SAME: %arg4: tensor<1x6xf32> {dist.seed = #dist.seed<"[1?, 6@dp]">
// ONE: nn.parameter "w" {{.*}}dist.seed = #dist.seed<"[5, 7@tp]">
// THREE: nn.parameter "w" {{.*}}dist.seed = #dist.seed<"[5@dp, 7@tp]">
// CHECK: nn.parameter "b"
// CHECK-NOT: dist.seed
// CHECK: nn.parameter "row"
// ONE-SAME: dist.seed = #dist.seed<"[1?, 6]">
// THREE-SAME: dist.seed = #dist.seed<"[1?, 6@dp]">
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data, tp=2:tensor">} {
  func.func @main(%m: tensor<5x7xf32> {nn.state = "adam.m/w", nn.initial = 0.0 : f64}, %v: tensor<5x7xf32> {nn.state = "adam.v/w", nn.initial = 0.0 : f64},
                  %mb: tensor<7xf32> {nn.state = "momentum/b", nn.initial = 0.0 : f64}, %other: tensor<4x4xf32> {nn.state = "cache", nn.initial = 0.0 : f64},
                  %mr: tensor<1x6xf32> {nn.state = "momentum/row", nn.initial = 0.0 : f64}) {
    %w = nn.parameter "w" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.seed<"[5?, 7@tp]">} : tensor<5x7xf32>
    %b = nn.parameter "b" stored <file = "w", bytes = 28, hashes = [0]> : tensor<7xf32>
    %r = nn.parameter "row" stored <file = "w", bytes = 24, hashes = [0]> : tensor<1x6xf32>
    return
  }
}

// -----

// Without tensor parallelism a vector of 64 KiB is cut too; one of a number less stays whole, and its gradient goes with others.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<16384xf32> {dist.seed = #dist.seed<"[16384@dp]">
// CHECK-SAME: %arg1: tensor<16383xf32> {nn.initial
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=1:tensor">} {
  func.func @main(%ml: tensor<16384xf32> {nn.state = "momentum/large", nn.initial = 0.0 : f64}, %ms: tensor<16383xf32> {nn.state = "momentum/small", nn.initial = 0.0 : f64}) {
    %large = nn.parameter "large" stored <file = "w", bytes = 65536, hashes = [0]> : tensor<16384xf32>
    %small = nn.parameter "small" stored <file = "w", bytes = 65532, hashes = [0]> : tensor<16383xf32>
    return
  }
}

// -----

// What the user cuts over dp stays as it is on every level, and its states are cut as it is: dp cannot cut another dim of them too.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<5x7xf32> {dist.seed = #dist.seed<"[5?, 7@dp]">
// CHECK-SAME: %arg1: tensor<5x7xf32> {dist.seed = #dist.seed<"[5?, 7@dp]">
// CHECK: nn.parameter "mine" {{.*}}dist.seed = #dist.seed<"[5?, 7@dp]">
module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=1:tensor">} {
  func.func @main(%m: tensor<5x7xf32> {nn.state = "adam.m/mine", nn.initial = 0.0 : f64}, %v: tensor<5x7xf32> {nn.state = "adam.v/mine", nn.initial = 0.0 : f64}) {
    %w = nn.parameter "mine" stored <file = "w", bytes = 140, hashes = [0]> {dist.seed = #dist.seed<"[5?, 7@dp]">} : tensor<5x7xf32>
    return
  }
}

// -----

// With tensor axes a vector is not cut, however large, since these may cut it later. A matrix is cut along the dim that the seed leaves, though the other dim comes first.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<16384xf32> {nn.initial
// CHECK-SAME: %arg1: tensor<6x7xf32> {dist.seed = #dist.seed<"[6@tp, 7@dp]">
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=2:tensor">} {
  func.func @main(%mv: tensor<16384xf32> {nn.state = "momentum/vector", nn.initial = 0.0 : f64}, %mm: tensor<6x7xf32> {nn.state = "momentum/matrix", nn.initial = 0.0 : f64}) {
    %vector = nn.parameter "vector" stored <file = "w", bytes = 65536, hashes = [0]> : tensor<16384xf32>
    %matrix = nn.parameter "matrix" stored <file = "w", bytes = 168, hashes = [0]> {dist.seed = #dist.seed<"[6@tp, 7?]">} : tensor<6x7xf32>
    return
  }
}

// -----

// Who asks for it and has no data parallel ranks hears that it does nothing.
// ALONE: remark: --zero=1 cuts what data parallel ranks hold alike, and there is one such rank: nothing is cut; add --dp=N, or leave it out
module attributes {dist.mesh = #dist.mesh<"dp=1:data, tp=2:tensor">} {
  func.func @main(%m: tensor<5x7xf32> {nn.initial = 0.0 : f64, nn.state = "adam.m/w"}) -> tensor<5x7xf32> {
    %w = nn.parameter "w" stored <file = "w", bytes = 140, hashes = [0]> : tensor<5x7xf32>
    return %w : tensor<5x7xf32>
  }
}
