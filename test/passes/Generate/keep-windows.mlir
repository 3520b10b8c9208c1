// RUN: hpc-opt %s --split-input-file --hpc-keep-windows=chunk=2 --hpc-verify-generated | FileCheck %s

// A window of 3 and chunks of 2: 4 rows instead of 8. Row r holds position lap + r, or 4 less after the row that was written last; the mask, and a bias of the position, are those of these positions.
// If one of them is of another row, or a row that nothing wrote is read, numbers are of other keys.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[POSITION:arg1]]: tensor<i64>{{.*}}%[[STATE:arg2]]: tensor<1x2x4x4xf32> {{.*}}-> (tensor<1x1x4xf32>, tensor<1x2x4x4xf32> {nn.writes = "cache/0"})
// CHECK: %[[K:.*]] = nn.update_slice %[[STATE]], %{{.*}}, %[[POSITION]] {dim = 2 : i64, wraps} : tensor<1x2x4x4xf32>
// CHECK: %[[LAST:.*]] = nn.add %[[POSITION]], %{{.*}} : tensor<i64>
// CHECK: %[[ROW:.*]] = nn.mod %[[LAST]], %{{.*}} : tensor<i64>
// CHECK: %[[LAP:.*]] = nn.sub %[[LAST]], %[[ROW]] : tensor<i64>
// CHECK: %[[ROWS:.*]] = nn.iota {dim = 0 : i64} : tensor<4xi64>
// CHECK: %[[IS:.*]] = nn.compare le %[[ROWS]], %[[ROW]]
// CHECK-DAG: %[[NEW:.*]] = nn.iota offset %[[LAP]] : tensor<i64> {dim = 0 : i64} : tensor<4xi64>
// CHECK-DAG: %[[OLD:.*]] = nn.iota offset %[[LAP]] : tensor<i64> {dim = 0 : i64, start = -4 : i64} : tensor<4xi64>
// CHECK: %[[HELD:.*]] = nn.select %[[IS]], %[[NEW]], %[[OLD]]
// CHECK: %[[BIAS:.*]] = nn.gather %{{.*}}, %[[HELD]] {axis = 3 : i64} : tensor<1x2x1x8xf32>, tensor<4xi64> -> tensor<1x2x1x4xf32>
// CHECK: %[[COLUMN:.*]] = nn.reshape %[[HELD]] : tensor<4xi64> -> tensor<1x1x1x4xi64>
// CHECK: %[[NEAR:.*]] = nn.compare le %{{.*}}, %[[COLUMN]] : tensor<1x1x1x1xi64>, tensor<1x1x1x4xi64> -> tensor<1x1x1x4xi1>
// CHECK: %[[START:.*]] = nn.min %[[POSITION]], %{{.*}} : tensor<i64>
// CHECK: nn.attention %{{.*}}, %[[K]], %[[K]] bias %[[BIAS]] : tensor<1x2x1x4xf32> visible %[[NEAR]] : tensor<1x1x1x4xi1> query_start %[[START]] : tensor<i64>
// CHECK-NOT: hpc.window
module {
  func.func @main(%ids: tensor<1x1xi64> {nn.name = "ids"}, %position: tensor<i64> {nn.step_scalar = "position", nn.largest = 7 : i64}, %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"})
      -> (tensor<1x1x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}) {
    %table = nn.parameter "t" stored <file = "w", bytes = 256, hashes = [1]> : tensor<8x8xf32>
    %slopes = nn.parameter "slopes" stored <file = "w", bytes = 64, hashes = [1]> : tensor<1x2x1x8xf32>
    %e = nn.embedding %table, %ids {vocabulary = 8 : i64} : tensor<8x8xf32>, tensor<1x1xi64> -> tensor<1x1x8xf32>
    %x = nn.reshape %e : tensor<1x1x8xf32> -> tensor<1x2x1x4xf32>
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x1x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    %column = nn.iota {dim = 3 : i64} : tensor<1x1x1x8xi64>
    %first = nn.iota offset %position : tensor<i64> {dim = 2 : i64, start = -2 : i64} : tensor<1x1x1x1xi64>
    %near = nn.compare le %first, %column : tensor<1x1x1x1xi64>, tensor<1x1x1x8xi64> -> tensor<1x1x1x8xi1>
    %a = nn.attention %x, %k, %k bias %slopes : tensor<1x2x1x8xf32> visible %near : tensor<1x1x1x8xi1> query_start %position : tensor<i64> {scale = 0.5 : f64, hidden = -3.0e38 : f64, causal_offset = 0 : i64, hpc.window = 3 : i64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    %s = nn.slice %a {starts = array<i64: 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<1x2x1x4xf32> -> tensor<1x1x1x4xf32>
    %y = nn.reshape %s : tensor<1x1x1x4xf32> -> tensor<1x1x4xf32>
    return %y, %k : tensor<1x1x4xf32>, tensor<1x2x8x4xf32>
  }
}

// -----

// Of two rows a step, those after the query's are hidden, wherever they lie. A mask that a bias of minus infinity makes is computed of the positions held, in f32.
// CHECK-LABEL: func.func @main
// CHECK: nn.update_slice {{.*}} {dim = 2 : i64, wraps}
// CHECK: %[[HELD:.*]] = nn.select %{{.*}} : tensor<4xi1>, tensor<4xi64>
// CHECK: %[[COLUMN:.*]] = nn.cast %[[HELD]] : tensor<4xi64> -> tensor<4xf32>
// CHECK: %[[BIAS:.*]] = nn.select %{{.*}} : tensor<1x1x1x4xi1>, tensor<f32>, tensor<f32> -> tensor<1x1x1x4xf32>
// CHECK: %[[QUERY:.*]] = nn.iota offset %[[AT:.*]] : tensor<i64> {dim = 2 : i64} : tensor<1x1x1x1xi64>
// CHECK: %[[SEEN:.*]] = nn.compare ge %[[QUERY]], %{{.*}} : tensor<1x1x1x1xi64>, tensor<1x1x1x4xi64> -> tensor<1x1x1x4xi1>
// CHECK: %[[START:.*]] = nn.min %[[AT]], %{{.*}} : tensor<i64>
// CHECK: nn.attention {{.*}} bias %[[BIAS]] : tensor<1x1x1x4xf32> visible %[[SEEN]] : tensor<1x1x1x4xi1> query_start %[[START]] : tensor<i64> {causal_offset = 0 : i64, hidden = 0xFFF0000000000000 : f64, scale
module {
  func.func @main(%ids: tensor<1x2xi64> {nn.name = "ids"}, %position: tensor<i64> {nn.step_scalar = "position", nn.largest = 6 : i64}, %row: tensor<i64> {nn.step_scalar = "row", nn.largest = 1 : i64},
                  %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"}) -> (tensor<1x1x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}) {
    %table = nn.parameter "t" stored <file = "w", bytes = 256, hashes = [1]> : tensor<8x8xf32>
    %e = nn.embedding %table, %ids {vocabulary = 8 : i64} : tensor<8x8xf32>, tensor<1x2xi64> -> tensor<1x2x8xf32>
    %r = nn.reshape %e : tensor<1x2x8xf32> -> tensor<1x2x2x4xf32>
    %x = nn.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x2x2x4xf32> -> tensor<1x2x2x4xf32>
    %q = nn.slice %x {starts = array<i64: 0, 0, 1, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<1x2x2x4xf32> -> tensor<1x2x1x4xf32>
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x2x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    %at = nn.add %position, %row : tensor<i64>, tensor<i64> -> tensor<i64>
    %column = nn.iota {dim = 3 : i64} : tensor<1x1x1x8xf32>
    %first = nn.iota offset %at : tensor<i64> {dim = 2 : i64, start = -2 : i64} : tensor<1x1x1x1xf32>
    %far = nn.compare gt %first, %column : tensor<1x1x1x1xf32>, tensor<1x1x1x8xf32> -> tensor<1x1x1x8xi1>
    %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %bias = nn.select %far, %low, %zero : tensor<1x1x1x8xi1>, tensor<f32>, tensor<f32> -> tensor<1x1x1x8xf32>
    %a = nn.attention %q, %k, %k bias %bias : tensor<1x1x1x8xf32> query_start %at : tensor<i64> {scale = 0.5 : f64, causal_offset = 0 : i64, hpc.window = 3 : i64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    %s = nn.slice %a {starts = array<i64: 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<1x2x1x4xf32> -> tensor<1x1x1x4xf32>
    %y = nn.reshape %s : tensor<1x1x1x4xf32> -> tensor<1x1x4xf32>
    return %y, %k : tensor<1x1x4xf32>, tensor<1x2x8x4xf32>
  }
}

// -----

// As many rows as there are positions, and a state that another attention reads, whose window is none: nothing changes.
// CHECK-LABEL: func.func @main
// CHECK-NOT: wraps
// CHECK-NOT: hpc.window
// CHECK-NOT: tensor<1x2x4x4xf32>
module {
  func.func @main(%ids: tensor<1x1xi64> {nn.name = "ids"}, %position: tensor<i64> {nn.step_scalar = "position", nn.largest = 7 : i64}, %cache: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/0"},
                  %other: tensor<1x2x8x4xf32> {nn.initial = 0.0 : f64, nn.state = "cache/1"}) -> (tensor<1x1x4xf32>, tensor<1x2x8x4xf32> {nn.writes = "cache/0"}, tensor<1x2x8x4xf32> {nn.writes = "cache/1"}) {
    %table = nn.parameter "t" stored <file = "w", bytes = 256, hashes = [1]> : tensor<8x8xf32>
    %e = nn.embedding %table, %ids {vocabulary = 8 : i64} : tensor<8x8xf32>, tensor<1x1xi64> -> tensor<1x1x8xf32>
    %x = nn.reshape %e : tensor<1x1x8xf32> -> tensor<1x2x1x4xf32>
    %k = nn.update_slice %cache, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x1x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    %m = nn.update_slice %other, %x, %position {dim = 2 : i64} : tensor<1x2x8x4xf32>, tensor<1x2x1x4xf32>, tensor<i64> -> tensor<1x2x8x4xf32>
    %a = nn.attention %x, %k, %k query_start %position : tensor<i64> {scale = 0.5 : f64, causal_offset = 0 : i64, hpc.window = 7 : i64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    %b = nn.attention %a, %m, %m query_start %position : tensor<i64> {scale = 0.5 : f64, causal_offset = 0 : i64, hpc.window = 3 : i64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    %c = nn.attention %b, %m, %m query_start %position : tensor<i64> {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<1x2x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32> -> tensor<1x2x1x4xf32>
    %s = nn.slice %c {starts = array<i64: 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<1x2x1x4xf32> -> tensor<1x1x1x4xf32>
    %y = nn.reshape %s : tensor<1x1x1x4xf32> -> tensor<1x1x4xf32>
    return %y, %k, %m : tensor<1x1x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>
  }
}
