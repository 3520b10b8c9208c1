// RUN: hpc-opt %s --split-input-file --hpc-prove-causal | FileCheck %s

// A window whose hidden number is finite, so raise took no causal part of it: what it hides is evaluated for positions 0, 2, 4 and 6, and becomes the attribute by which kernels stop at the position.
// CHECK-LABEL: func.func @main
// Three positions are the farthest that a query sees, its own among them.
// CHECK: nn.attention {{.*}} visible {{.*}} query_start %arg1 : tensor<i64> {causal_offset = 0 : i64, hidden = -3.000000e+38 : f64, hpc.window = 3 : i64
module {
  func.func @main(%x: tensor<1x2x2x4xf32> {nn.name = "x"}, %position: tensor<i64> {nn.step_scalar = "position"}, %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"})
      -> (tensor<1x2x2x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}) {
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x2x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    %row = nn.iota offset %position : tensor<i64> {dim = 2 : i64} : tensor<1x1x2x1xi64>
    %column = nn.iota {dim = 3 : i64} : tensor<1x1x1x8xi64>
    %seen = nn.compare ge %row, %column : tensor<1x1x2x1xi64>, tensor<1x1x1x8xi64> -> tensor<1x1x2x8xi1>
    %first = nn.iota offset %position : tensor<i64> {dim = 2 : i64, start = -2 : i64} : tensor<1x1x2x1xi64>
    %near = nn.compare le %first, %column : tensor<1x1x2x1xi64>, tensor<1x1x1x8xi64> -> tensor<1x1x2x8xi1>
    %both = nn.and %seen, %near : tensor<1x1x2x8xi1>, tensor<1x1x2x8xi1> -> tensor<1x1x2x8xi1>
    %a = nn.attention %x, %k, %k visible %both : tensor<1x1x2x8xi1> {scale = 0.5 : f64, hidden = -3.0e38 : f64} : tensor<1x2x2x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x2x4xf32>
    return %a, %k : tensor<1x2x2x4xf32>, tensor<1x2x8x4xf32>
  }
}

// -----

// One row of two has a result: its place is position + row, and a bias of -1e9 hides what comes later.
// CHECK-LABEL: func.func @main
// CHECK: nn.select
// CHECK: %[[AT:.*]] = nn.add %arg1, %arg2
// CHECK: nn.attention {{.*}} bias {{.*}} query_start %[[AT]] : tensor<i64> {causal_offset = 0 : i64
module {
  func.func @main(%x: tensor<1x2x2x4xf32> {nn.name = "x"}, %position: tensor<i64> {nn.step_scalar = "position"}, %row: tensor<i64> {nn.step_scalar = "row"},
                  %q: tensor<1x2x1x4xf32> {nn.name = "q"}, %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"})
      -> (tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}) {
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x2x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    %at = nn.add %position, %row : tensor<i64>, tensor<i64> -> tensor<i64>
    %column = nn.iota {dim = 3 : i64} : tensor<1x1x1x8xi64>
    %later = nn.compare gt %column, %at : tensor<1x1x1x8xi64>, tensor<i64> -> tensor<1x1x1x8xi1>
    %low = nn.constant dense<-1.0e9> : tensor<f32> : tensor<f32>
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %bias = nn.select %later, %low, %zero : tensor<1x1x1x8xi1>, tensor<f32>, tensor<f32> -> tensor<1x1x1x8xf32>
    %a = nn.attention %q, %k, %k bias %bias : tensor<1x1x1x8xf32> {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    return %a, %k : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>
  }
}

// -----

// Causal by the attribute: `visible` is looked at for its window alone. One whose first keys all queries see has none.
// CHECK-LABEL: func.func @main
// CHECK: nn.attention {{.*}} hpc.window = 3 : i64
// CHECK: nn.attention {{.*}} hpc.window = 4 : i64
// CHECK-NOT: hpc.window
module {
  func.func @main(%x: tensor<1x2x1x4xf32> {nn.name = "x"}, %position: tensor<i64> {nn.step_scalar = "position"}, %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"})
      -> (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}) {
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x1x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    %column = nn.iota {dim = 3 : i64} : tensor<1x1x1x8xi64>
    %first = nn.iota offset %position : tensor<i64> {dim = 2 : i64, start = -2 : i64} : tensor<1x1x1x1xi64>
    %near = nn.compare le %first, %column : tensor<1x1x1x1xi64>, tensor<1x1x1x8xi64> -> tensor<1x1x1x8xi1>
    %a = nn.attention %x, %k, %k visible %near : tensor<1x1x1x8xi1> query_start %position : tensor<i64> {scale = 0.5 : f64, hidden = -3.0e38 : f64, causal_offset = 0 : i64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    %three = nn.constant dense<3> : tensor<i64> : tensor<i64>
    %start = nn.sub %position, %three : tensor<i64>, tensor<i64> -> tensor<i64>
    %four = nn.compare ge %column, %start : tensor<1x1x1x8xi64>, tensor<i64> -> tensor<1x1x1x8xi1>
    %c = nn.attention %x, %k, %k visible %four : tensor<1x1x1x8xi1> query_start %position : tensor<i64> {scale = 0.5 : f64, hidden = -3.0e38 : f64, causal_offset = 0 : i64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    %one = nn.constant dense<1> : tensor<i64> : tensor<i64>
    %sink = nn.compare lt %column, %one : tensor<1x1x1x8xi64>, tensor<i64> -> tensor<1x1x1x8xi1>
    %both = nn.or %near, %sink : tensor<1x1x1x8xi1>, tensor<1x1x1x8xi1> -> tensor<1x1x1x8xi1>
    %b = nn.attention %x, %k, %k visible %both : tensor<1x1x1x8xi1> query_start %position : tensor<i64> {scale = 0.5 : f64, hidden = -3.0e38 : f64, causal_offset = 0 : i64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    return %a, %b, %c, %k : tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>
  }
}
