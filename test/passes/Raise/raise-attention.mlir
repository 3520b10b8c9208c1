// RUN: hpc-opt %s --hpc-raise-attention --split-input-file | FileCheck %s

// gpt2's spelling: scores divided, masked by a selection and by an addition, K from [B, S, H, D] by one transpose.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x3x4x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[K]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT: %[[Y:.*]] = nn.attention %[[Q]], %[[T]], %[[V]] {causal_offset = 0 : i64, scale = 0.3535{{.*}} : f64}
// CHECK-NEXT: return %[[Y]]
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %root = nn.constant dense<2.8284270763397217> : tensor<f32> : tensor<f32>
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %kt = nn.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : tensor<2x3x4x8xf32> -> tensor<2x4x8x3xf32>
  %s = nn.matmul %q, %kt : tensor<2x4x3x8xf32>, tensor<2x4x8x3xf32> -> tensor<2x4x3x3xf32>
  %d = nn.div %s, %root : tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %e = nn.select %c, %d, %low : tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %a = nn.select %c, %zero, %low : tensor<3x3xi1>, tensor<f32>, tensor<f32> -> tensor<3x3xf32>
  %b = nn.reshape %a : tensor<3x3xf32> -> tensor<1x1x3x3xf32>
  %m = nn.add %e, %b : tensor<2x4x3x3xf32>, tensor<1x1x3x3xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// No mask, no scale.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x4x3x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>
// CHECK-NEXT: nn.attention %[[Q]], %[[K]], %[[V]] {scale = 1.000000e+00 : f64}
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %s : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// Other spellings of the causal mask: j < i + 2 negated, by rank-4 positions made from rank-1 ones, -infinity where true.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x4x3x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] {causal_offset = 1 : i64, scale = 5.000000e-01 : f64}
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
  %two = nn.constant dense<2> : tensor<i64> : tensor<i64>
  %n = nn.iota {dim = 0 : i64} : tensor<3xi64>
  %r = nn.reshape %n : tensor<3xi64> -> tensor<1x1x3x1xi64>
  %o = nn.add %r, %two : tensor<1x1x3x1xi64>, tensor<i64> -> tensor<1x1x3x1xi64>
  %l = nn.compare lt %n, %o : tensor<3xi64>, tensor<1x1x3x1xi64> -> tensor<1x1x3x3xi1>
  %c = nn.not %l : tensor<1x1x3x3xi1> -> tensor<1x1x3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %h = nn.mul %half, %s : tensor<f32>, tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %m = nn.select %c, %low, %h : tensor<1x1x3x3xi1>, tensor<f32>, tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A bias of weights beside a causal mask cannot mask anything, so the mask stays causal.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x4x3x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>
// CHECK: %[[B:.*]] = nn.parameter "bias"
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] bias %[[B]] : tensor<1x4x3x3xf32> {causal_offset = 0 : i64
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %b = nn.parameter "bias" stored <file = "w", bytes = 144, hashes = [1]> : tensor<1x4x3x3xf32>
  %a = nn.add %s, %b : tensor<2x4x3x3xf32>, tensor<1x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %m = nn.select %c, %a, %low : tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A mask that is data may hide a whole row. Then -3.4e38 for what is causally hidden counts like it: the causal mask must be one of those that replace scores, before the other is added.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x4x3x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>, %[[M:[^:]*]]:
// CHECK: %[[C:.*]] = nn.compare ge
// CHECK: %[[S:.*]] = nn.reshape %[[C]] : tensor<3x3xi1> -> tensor<1x1x3x3xi1>
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] bias %[[M]] : tensor<2x1x1x3xf32> visible %[[S]] : tensor<1x1x3x3xi1> {hidden = -3.40{{.*}}E+38 : f64, scale
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>, %mask: tensor<2x1x1x3xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %e = nn.select %c, %s, %low : tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %m = nn.add %e, %mask : tensor<2x4x3x3xf32>, tensor<2x1x1x3xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// With -infinity what is causally hidden is 0 in any row, so the mask of data alone is the bias.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x4x3x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>, %[[M:[^:]*]]:
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] bias %[[M]] : tensor<2x1x1x3xf32> {causal_offset = 0 : i64
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>, %mask: tensor<2x1x1x3xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %e = nn.select %c, %s, %low : tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %m = nn.add %e, %mask : tensor<2x4x3x3xf32>, tensor<2x1x1x3xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A selection by data hides scores: as a bias of 0 and the low number it would let through NaN, scores of more than that, and gradients where it hides whole rows.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x4x3x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>, %[[C:[^:]*]]:
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] visible %[[C]] : tensor<2x1x1x3xi1> {hidden = -3.40{{.*}}E+38 : f64, scale
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>, %c: tensor<2x1x1x3xi1>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> : tensor<f32>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = nn.select %c, %s, %low : tensor<2x1x1x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A conjunction of causal and data with -infinity: the causal part is the attribute, the rest what is visible.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x4x3x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>, %[[D:[^:]*]]:
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] visible %[[D]] : tensor<2x1x1x3xi1> {causal_offset = 0 : i64, hidden = 0xFFF0000000000000 : f64
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>, %d: tensor<2x1x1x3xi1>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %e = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %c = nn.and %e, %d : tensor<3x3xi1>, tensor<2x1x1x3xi1> -> tensor<2x1x3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = nn.select %c, %s, %low : tensor<2x1x3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// NaN replaced after softmax only matters in a row that sees nothing; under a causal mask there is none.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x4x3x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>
// CHECK-NOT: nn.is_nan
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] {causal_offset = 0 : i64
// CHECK-NEXT: return
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = nn.select %c, %s, %low : tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %w = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %n = nn.is_nan %w : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xi1>
  %p = nn.select %n, %zero, %w : tensor<2x4x3x3xi1>, tensor<f32>, tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// Under a mask of data there may be one: such rows give 0, which only a guarded nn.attention does.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.is_nan
// CHECK: nn.attention {{.*}} visible {{.*}}guarded
// CHECK-NOT: nn.is_nan
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>, %c: tensor<2x1x1x3xi1>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = nn.select %c, %s, %low : tensor<2x1x1x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %w = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %n = nn.is_nan %w : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xi1>
  %p = nn.select %n, %zero, %w : tensor<2x4x3x3xi1>, tensor<f32>, tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// j <= i - 1 leaves the first row empty, where -3.4e38 is uniform and -infinity NaN: a mask, not an offset.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x4x3x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] visible %{{.*}} : tensor<1x1x3x3xi1> {hidden = -3.40
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare gt %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = nn.select %c, %s, %low : tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// The mirrored mask, j >= i, is not causal.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x4x3x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] visible %{{.*}} : tensor<1x1x3x3xi1> {hidden = 0xFFF
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare le %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = nn.select %c, %s, %low : tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A bias that is scaled together with the scores is not nn.attention's.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.attention
// CHECK: nn.softmax
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>, %mask: tensor<2x1x1x3xf32>) -> tensor<2x4x3x8xf32> {
  %half = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %e = nn.add %s, %mask : tensor<2x4x3x3xf32>, tensor<2x1x1x3xf32> -> tensor<2x4x3x3xf32>
  %m = nn.mul %e, %half : tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// -1000 does not hide: exp(-1000 - s) may be far from 0.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.attention
// CHECK: nn.softmax
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-1000.0> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = nn.select %c, %s, %low : tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// Rank 3, heads in the batch: one head each, and a bias per head.
// CHECK-LABEL: func.func @main(
// CHECK: %[[B:.*]] = nn.reshape %{{.*}} : tensor<6x3x5xf32> -> tensor<6x1x3x5xf32>
// CHECK: %[[A:.*]] = nn.attention %{{.*}}, %{{.*}}, %{{.*}} bias %[[B]] : tensor<6x1x3x5xf32> {scale = {{.*}}} : tensor<6x1x3x8xf32>, tensor<6x1x5x8xf32>, tensor<6x1x5x7xf32> -> tensor<6x1x3x7xf32>
// CHECK: nn.reshape %[[A]] : tensor<6x1x3x7xf32> -> tensor<6x3x7xf32>
func.func @main(%q: tensor<6x3x8xf32>, %k: tensor<6x8x5xf32>, %v: tensor<6x7x5xf32>, %b: tensor<6x3x5xf32>) -> tensor<6x3x7xf32> {
  %s = nn.matmul %q, %k : tensor<6x3x8xf32>, tensor<6x8x5xf32> -> tensor<6x3x5xf32>
  %m = nn.add %s, %b : tensor<6x3x5xf32>, tensor<6x3x5xf32> -> tensor<6x3x5xf32>
  %p = nn.softmax %m : tensor<6x3x5xf32> -> tensor<6x3x5xf32>
  %y = nn.matmul %p, %v {transpose_rhs} : tensor<6x3x5xf32>, tensor<6x7x5xf32> -> tensor<6x3x7xf32>
  return %y : tensor<6x3x7xf32>
}

// -----

// Grouped attention: the exporter repeats keys and values for the heads of a group, nn.attention need not.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x2x3x8xf32>, %[[V:[^:]*]]: tensor<2x2x3x8xf32>
// CHECK-NEXT: nn.attention %[[Q]], %[[K]], %[[V]] {scale = {{.*}}} : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x8xf32> -> tensor<2x4x3x8xf32>
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %k0 = nn.reshape %k : tensor<2x2x3x8xf32> -> tensor<2x2x1x3x8xf32>
  %k1 = nn.broadcast %k0 : tensor<2x2x1x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %k2 = nn.reshape %k1 : tensor<2x2x2x3x8xf32> -> tensor<2x4x3x8xf32>
  %v0 = nn.reshape %v : tensor<2x2x3x8xf32> -> tensor<2x2x1x3x8xf32>
  %v1 = nn.broadcast %v0 : tensor<2x2x1x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %v2 = nn.reshape %v1 : tensor<2x2x2x3x8xf32> -> tensor<2x4x3x8xf32>
  %s = nn.matmul %q, %k2 {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %s : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v2 : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// An nn.attention from the model's own op, whose causal mask is a bias: S x S numbers that need not exist.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>
// CHECK-NEXT: nn.attention %[[Q]], %[[Q]], %[[Q]] {causal_offset = 0 : i64, scale = 5.000000e-01 : f64}
func.func @main(%q: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 2 : i64} : tensor<1x1x3x1xi64>
  %j = nn.iota {dim = 3 : i64} : tensor<1x1x1x3xi64>
  %c = nn.compare ge %i, %j : tensor<1x1x3x1xi64>, tensor<1x1x1x3xi64> -> tensor<1x1x3x3xi1>
  %b = nn.select %c, %zero, %low : tensor<1x1x3x3xi1>, tensor<f32>, tensor<f32> -> tensor<1x1x3x3xf32>
  %y = nn.attention %q, %q, %q bias %b : tensor<1x1x3x3xf32> {scale = 0.5 : f64} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// f16 as exporters write it: the lowest f16 where a key is hidden, a softmax in f32 with the mask of padding added there. The bias keeps its type.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf16>, %[[K:[^:]*]]: tensor<2x4x3x8xf16>, %[[V:[^:]*]]: tensor<2x4x3x8xf16>, %[[M:[^:]*]]: tensor<2x1x1x3xf32>
// CHECK-NEXT: nn.attention %[[Q]], %[[K]], %[[V]] bias %[[M]] : tensor<2x1x1x3xf32> {scale = 5.000000e-01 : f64}
func.func @main(%q: tensor<2x4x3x8xf16>, %k: tensor<2x4x3x8xf16>, %v: tensor<2x4x3x8xf16>, %mask: tensor<2x1x1x3xf32>) -> tensor<2x4x3x8xf16> {
  %half = nn.constant dense<0.5> : tensor<f16> : tensor<f16>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf16>, tensor<2x4x3x8xf16> -> tensor<2x4x3x3xf16>
  %h = nn.mul %s, %half : tensor<2x4x3x3xf16>, tensor<f16> -> tensor<2x4x3x3xf16>
  %w = nn.cast %h : tensor<2x4x3x3xf16> -> tensor<2x4x3x3xf32>
  %m = nn.add %w, %mask : tensor<2x4x3x3xf32>, tensor<2x1x1x3xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %n = nn.cast %p : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf16>
  %y = nn.matmul %n, %v : tensor<2x4x3x3xf16>, tensor<2x4x3x8xf16> -> tensor<2x4x3x8xf16>
  return %y : tensor<2x4x3x8xf16>
}

// -----

// A causal mask of -65504, the lowest f16, and one of -1e4 that is added.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf16>, %[[K:[^:]*]]: tensor<2x4x3x8xf16>, %[[V:[^:]*]]: tensor<2x4x3x8xf16>
// CHECK-NEXT: %[[Y:.*]] = nn.attention %[[Q]], %[[K]], %[[V]] {causal_offset = 0 : i64, scale = 1.000000e+00 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @main(%q: tensor<2x4x3x8xf16>, %k: tensor<2x4x3x8xf16>, %v: tensor<2x4x3x8xf16>) -> tensor<2x4x3x8xf16> {
  %low = nn.constant dense<-6.550400e+04> : tensor<f16> : tensor<f16>
  %lowish = nn.constant dense<-1.0e+04> : tensor<f32> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf16>, tensor<2x4x3x8xf16> -> tensor<2x4x3x3xf16>
  %e = nn.select %c, %s, %low : tensor<3x3xi1>, tensor<2x4x3x3xf16>, tensor<f16> -> tensor<2x4x3x3xf16>
  %w = nn.cast %e : tensor<2x4x3x3xf16> -> tensor<2x4x3x3xf32>
  %a = nn.select %c, %zero, %lowish : tensor<3x3xi1>, tensor<f32>, tensor<f32> -> tensor<3x3xf32>
  %m = nn.add %w, %a : tensor<2x4x3x3xf32>, tensor<3x3xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %n = nn.cast %p : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf16>
  %y = nn.matmul %n, %v : tensor<2x4x3x3xf16>, tensor<2x4x3x8xf16> -> tensor<2x4x3x8xf16>
  return %y : tensor<2x4x3x8xf16>
}

// -----

// -1e4 as bf16 rounds it is a mask like any other.
// CHECK-LABEL: func.func @main(
// CHECK: nn.attention {{.*}} {causal_offset = 0 : i64
func.func @main(%q: tensor<2x4x3x8xbf16>, %k: tensor<2x4x3x8xbf16>, %v: tensor<2x4x3x8xbf16>) -> tensor<2x4x3x8xbf16> {
  %low = nn.constant dense<-9.984e+03> : tensor<bf16> : tensor<bf16>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xbf16>, tensor<2x4x3x8xbf16> -> tensor<2x4x3x3xbf16>
  %e = nn.select %c, %s, %low : tensor<3x3xi1>, tensor<2x4x3x3xbf16>, tensor<bf16> -> tensor<2x4x3x3xbf16>
  %w = nn.cast %e : tensor<2x4x3x3xbf16> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %w : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %n = nn.cast %p : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xbf16>
  %y = nn.matmul %n, %v : tensor<2x4x3x3xbf16>, tensor<2x4x3x8xbf16> -> tensor<2x4x3x8xbf16>
  return %y : tensor<2x4x3x8xbf16>
}

// -----

// A number above it is one that scores may come near.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: causal_offset
// CHECK: return
func.func @main(%q: tensor<2x4x3x8xbf16>, %k: tensor<2x4x3x8xbf16>, %v: tensor<2x4x3x8xbf16>) -> tensor<2x4x3x8xbf16> {
  %low = nn.constant dense<-9.92e+03> : tensor<bf16> : tensor<bf16>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xbf16>, tensor<2x4x3x8xbf16> -> tensor<2x4x3x3xbf16>
  %e = nn.select %c, %s, %low : tensor<3x3xi1>, tensor<2x4x3x3xbf16>, tensor<bf16> -> tensor<2x4x3x3xbf16>
  %w = nn.cast %e : tensor<2x4x3x3xbf16> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %w : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %n = nn.cast %p : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xbf16>
  %y = nn.matmul %n, %v : tensor<2x4x3x3xbf16>, tensor<2x4x3x8xbf16> -> tensor<2x4x3x8xbf16>
  return %y : tensor<2x4x3x8xbf16>
}

// -----

// -1e4 in place of scores that data hides is no bias: where all of a row is hidden the weights are equal, and -1e4 added would leave them to the scores.
// CHECK-LABEL: func.func @main(
// CHECK: nn.attention {{.*}} visible {{.*}} {hidden = -1.000000e+04 : f64
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>, %mask: tensor<2x1x1x3xi1>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-1.0e+04> : tensor<f32> : tensor<f32>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = nn.select %mask, %s, %low : tensor<2x1x1x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A bias that could lift what -1e4 hides back among the scores leaves the mask what it is, a number that is added.
// CHECK-LABEL: func.func @main(
// CHECK: nn.attention
// CHECK-NOT: causal_offset
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-1.0e+04> : tensor<f32> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %lift = nn.constant dense<[0.0, 0.0, 9.0e+03]> : tensor<3xf32> : tensor<3xf32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %a = nn.select %c, %zero, %low : tensor<3x3xi1>, tensor<f32>, tensor<f32> -> tensor<3x3xf32>
  %l = nn.add %s, %lift : tensor<2x4x3x3xf32>, tensor<3xf32> -> tensor<2x4x3x3xf32>
  %m = nn.add %l, %a : tensor<2x4x3x3xf32>, tensor<3x3xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// q and k each scaled by the root of the scale, k behind the repetition of its groups: with the scale in one place there is nothing to repeat.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x2x3x8xf32>, %[[V:[^:]*]]: tensor<2x2x3x8xf32>
// CHECK-NEXT: nn.attention %[[Q]], %[[K]], %[[V]] {{{.*}}scale = 2.500000e-01
// CHECK-NEXT: return
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %root = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
  %k1 = nn.reshape %k : tensor<2x2x3x8xf32> -> tensor<2x2x1x3x8xf32>
  %k2 = nn.broadcast %k1 : tensor<2x2x1x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %k3 = nn.reshape %k2 : tensor<2x2x2x3x8xf32> -> tensor<2x4x3x8xf32>
  %k4 = nn.transpose %k3 {permutation = array<i64: 0, 1, 3, 2>} : tensor<2x4x3x8xf32> -> tensor<2x4x8x3xf32>
  %k5 = nn.mul %k4, %root : tensor<2x4x8x3xf32>, tensor<f32> -> tensor<2x4x8x3xf32>
  %v1 = nn.reshape %v : tensor<2x2x3x8xf32> -> tensor<2x2x1x3x8xf32>
  %v2 = nn.broadcast %v1 : tensor<2x2x1x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %v3 = nn.reshape %v2 : tensor<2x2x2x3x8xf32> -> tensor<2x4x3x8xf32>
  %q1 = nn.mul %q, %root : tensor<2x4x3x8xf32>, tensor<f32> -> tensor<2x4x3x8xf32>
  %s = nn.matmul %q1, %k5 : tensor<2x4x3x8xf32>, tensor<2x4x8x3xf32> -> tensor<2x4x3x3xf32>
  %w = nn.softmax %s : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %w, %v3 : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// In f16 the scale of the operands keeps the scores from overflowing: it stays with them.
// CHECK-LABEL: func.func @main(
// CHECK: nn.mul
// CHECK: nn.attention {{.*}}scale = 1.000000e+00
func.func @main(%q: tensor<2x4x3x8xf16>, %k: tensor<2x4x3x8xf16>, %v: tensor<2x4x3x8xf16>) -> tensor<2x4x3x8xf16> {
  %root = nn.constant dense<0.125> : tensor<f16> : tensor<f16>
  %q1 = nn.mul %q, %root : tensor<2x4x3x8xf16>, tensor<f16> -> tensor<2x4x3x8xf16>
  %s = nn.matmul %q1, %k {transpose_rhs} : tensor<2x4x3x8xf16>, tensor<2x4x3x8xf16> -> tensor<2x4x3x3xf16>
  %w = nn.softmax %s : tensor<2x4x3x3xf16> -> tensor<2x4x3x3xf16>
  %y = nn.matmul %w, %v : tensor<2x4x3x3xf16>, tensor<2x4x3x8xf16> -> tensor<2x4x3x8xf16>
  return %y : tensor<2x4x3x8xf16>
}

// -----

// Weights that are dropped: the op draws them. Batches of heads are one dim here, as torch's own module has them, and the dropout counts its elements alike.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[STEP:[^:]*]]: tensor<f64>, %[[SEED:[^:]*]]: tensor<f64>
// CHECK-NOT: nn.dropout
// CHECK: nn.attention %{{.*}} dropout %[[STEP]], %[[SEED]] : tensor<f64>, tensor<f64> {rate = 1.000000e-01 : f64, scale = 5.000000e-01 : f64, site = 7 : i64} : tensor<8x1x3x8xf32>
// CHECK-NOT: nn.dropout
func.func @main(%q: tensor<8x3x8xf32>, %k: tensor<8x3x8xf32>, %v: tensor<8x3x8xf32>, %step: tensor<f64>, %seed: tensor<f64>) -> tensor<8x3x8xf32> {
  %half = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<8x3x8xf32>, tensor<8x3x8xf32> -> tensor<8x3x3xf32>
  %h = nn.mul %half, %s : tensor<f32>, tensor<8x3x3xf32> -> tensor<8x3x3xf32>
  %p = nn.softmax %h : tensor<8x3x3xf32> -> tensor<8x3x3xf32>
  %d = nn.dropout %p, %step, %seed {site = 7 : i64, rate = 1.0e-1 : f64} : tensor<8x3x3xf32>, tensor<f64>, tensor<f64> -> tensor<8x3x3xf32>
  %y = nn.matmul %d, %v : tensor<8x3x3xf32>, tensor<8x3x8xf32> -> tensor<8x3x8xf32>
  return %y : tensor<8x3x8xf32>
}

// -----

// A softmax in a wider type is narrowed before what is dropped; NaN of rows that see nothing is 0 before.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.is_nan
// CHECK: nn.attention {{.*}} visible {{.*}} dropout {{.*}}guarded
// CHECK-NOT: nn.dropout
func.func @main(%q: tensor<2x4x3x8xf16>, %k: tensor<2x4x3x8xf16>, %v: tensor<2x4x3x8xf16>, %c: tensor<2x1x1x3xi1>, %step: tensor<f64>, %seed: tensor<f64>) -> tensor<2x4x3x8xf16> {
  %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf16>, tensor<2x4x3x8xf16> -> tensor<2x4x3x3xf16>
  %w = nn.cast %s : tensor<2x4x3x3xf16> -> tensor<2x4x3x3xf32>
  %m = nn.select %c, %w, %low : tensor<2x1x1x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %n = nn.is_nan %p : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xi1>
  %g = nn.select %n, %zero, %p : tensor<2x4x3x3xi1>, tensor<f32>, tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %t = nn.cast %g : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf16>
  %d = nn.dropout %t, %step, %seed {site = 7 : i64, rate = 1.0e-1 : f64} : tensor<2x4x3x3xf16>, tensor<f64>, tensor<f64> -> tensor<2x4x3x3xf16>
  %y = nn.matmul %d, %v : tensor<2x4x3x3xf16>, tensor<2x4x3x8xf16> -> tensor<2x4x3x8xf16>
  return %y : tensor<2x4x3x8xf16>
}

// -----

// A softmax node of f16 as the import writes it: in f32, narrowed before NaN is looked for. The product may stay in f32.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.softmax
// CHECK: nn.attention {{.*}} bias {{.*}}guarded
// CHECK-NOT: nn.softmax
func.func @main(%q: tensor<2x4x3x8xf16>, %k: tensor<2x4x3x8xf16>, %v: tensor<2x4x3x8xf16>, %b: tensor<2x1x1x3xf32>) -> tensor<2x4x3x8xf16> {
  %zero = nn.constant dense<0.0> : tensor<f16> : tensor<f16>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf16>, tensor<2x4x3x8xf16> -> tensor<2x4x3x3xf32>
  %m = nn.add %s, %b : tensor<2x4x3x3xf32>, tensor<2x1x1x3xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %t = nn.cast %p : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf16>
  %n = nn.is_nan %t : tensor<2x4x3x3xf16> -> tensor<2x4x3x3xi1>
  %g = nn.select %n, %zero, %t : tensor<2x4x3x3xi1>, tensor<f16>, tensor<2x4x3x3xf16> -> tensor<2x4x3x3xf16>
  %y = nn.matmul %g, %v : tensor<2x4x3x3xf16>, tensor<2x4x3x8xf16> -> tensor<2x4x3x8xf16>
  return %y : tensor<2x4x3x8xf16>
}

// -----

// Selections before and after a sum: what is hidden is what the steps make of 0, each with its own number, and nothing of the score.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[M:[^:]*]]: tensor<2x1x1x3xf32>, %[[A:[^:]*]]: tensor<2x1x1x3xi1>, %[[B:[^:]*]]: tensor<2x1x3x3xi1>
// CHECK: %[[S:.*]] = nn.and %[[A]], %[[B]]
// CHECK: %[[X:.*]] = nn.select %[[A]]
// CHECK: %[[Y:.*]] = nn.add %[[X]], %[[M]]
// CHECK: %[[Z:.*]] = nn.select %[[B]], %[[Y]]
// CHECK: nn.attention {{.*}} bias %[[Z]] : tensor<2x1x3x3xf32> visible %[[S]] : tensor<2x1x3x3xi1> {scale
func.func @main(%mask: tensor<2x1x1x3xf32>, %a: tensor<2x1x1x3xi1>, %b: tensor<2x1x3x3xi1>, %q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-1.0e+30> : tensor<f32> : tensor<f32>
  %lower = nn.constant dense<-3.40282347E+38> : tensor<f32> : tensor<f32>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %e = nn.select %a, %s, %low : tensor<2x1x1x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %m = nn.add %e, %mask : tensor<2x4x3x3xf32>, tensor<2x1x1x3xf32> -> tensor<2x4x3x3xf32>
  %f = nn.select %b, %m, %lower : tensor<2x1x3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %f : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A softmax in f64 of f32 scores is more than nn.attention's f32, whose lowest number would be -infinity here.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.attention
// CHECK: nn.softmax
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>, %c: tensor<2x1x1x3xi1>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-1.0e+300> : tensor<f64> : tensor<f64>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %w = nn.cast %s : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf64>
  %m = nn.select %c, %w, %low : tensor<2x1x1x3xi1>, tensor<2x4x3x3xf64>, tensor<f64> -> tensor<2x4x3x3xf64>
  %p = nn.softmax %m : tensor<2x4x3x3xf64> -> tensor<2x4x3x3xf64>
  %n = nn.cast %p : tensor<2x4x3x3xf64> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %n, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A bias that makes rows of one query's scores is more than one of nn.attention, which has as many results as queries.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: nn.attention
func.func @main(%q: tensor<2x4x1x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>, %b: tensor<1x1x3x3xf32>) -> tensor<2x4x3x8xf32> {
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x1x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x1x3xf32>
  %m = nn.add %s, %b : tensor<2x4x1x3xf32>, tensor<1x1x3x3xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A diagonal that moves with the batch is not the causal attribute, which is one number.
// CHECK-LABEL: func.func @main(
// CHECK: nn.attention {{.*}} visible %{{.*}} : tensor<2x1x3x3xi1>
// CHECK-NOT: causal_offset
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> : tensor<f32>
  %b = nn.iota {dim = 0 : i64} : tensor<2x1x1x1xi64>
  %i = nn.iota {dim = 2 : i64} : tensor<1x1x3x1xi64>
  %j = nn.iota {dim = 3 : i64} : tensor<1x1x1x3xi64>
  %o = nn.add %i, %b : tensor<1x1x3x1xi64>, tensor<2x1x1x1xi64> -> tensor<2x1x3x1xi64>
  %c = nn.compare ge %o, %j : tensor<2x1x3x1xi64>, tensor<1x1x1x3xi64> -> tensor<2x1x3x3xi1>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = nn.select %c, %s, %low : tensor<2x1x3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// Groups that stand one after the other (0 1 0 1) are not those of grouped attention (0 0 1 1).
// CHECK-LABEL: func.func @main(
// CHECK: nn.broadcast
// CHECK: nn.attention {{.*}} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %k1 = nn.reshape %k : tensor<2x2x3x8xf32> -> tensor<2x1x2x3x8xf32>
  %k2 = nn.broadcast %k1 : tensor<2x1x2x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %k3 = nn.reshape %k2 : tensor<2x2x2x3x8xf32> -> tensor<2x4x3x8xf32>
  %v1 = nn.reshape %v : tensor<2x2x3x8xf32> -> tensor<2x1x2x3x8xf32>
  %v2 = nn.broadcast %v1 : tensor<2x1x2x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %v3 = nn.reshape %v2 : tensor<2x2x2x3x8xf32> -> tensor<2x4x3x8xf32>
  %s = nn.matmul %q, %k3 {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %s : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v3 : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A causal mask and a window of two keys in one selection that is added, with a low number that is finite: a row sees its own key, so the causal part is the op's own and the window hides.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x3x8xf32>, %[[K:[^:]*]]: tensor<2x4x3x8xf32>, %[[V:[^:]*]]: tensor<2x4x3x8xf32>
// CHECK: %[[W:.*]] = nn.compare le
// CHECK: %[[S:.*]] = nn.reshape %[[W]] : tensor<3x3xi1> -> tensor<1x1x3x3xi1>
// CHECK: nn.attention %[[Q]], %[[K]], %[[V]] visible %[[S]] : tensor<1x1x3x3xi1> {causal_offset = 0 : i64, hidden = -3.40{{.*}}E+38 : f64, scale = 1.000000e+00 : f64}
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %first = nn.iota {dim = 0 : i64, start = -1 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %w = nn.compare le %first, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %both = nn.and %c, %w : tensor<3x3xi1>, tensor<3x3xi1> -> tensor<3x3xi1>
  %a = nn.select %both, %zero, %low : tensor<3x3xi1>, tensor<f32>, tensor<f32> -> tensor<3x3xf32>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = nn.add %s, %a : tensor<2x4x3x3xf32>, tensor<3x3xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A window that begins after a query's own key leaves the first row without a key: all its scores are as low, and its weights are uniform, over later keys as well.
// CHECK-LABEL: func.func @main(
// CHECK: nn.attention {{.*}} bias
// CHECK-NOT: causal_offset
// CHECK: return
func.func @main(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %low = nn.constant dense<-3.40282347E+38> : tensor<f32> : tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
  %i = nn.iota {dim = 0 : i64} : tensor<3x1xi64>
  %first = nn.iota {dim = 0 : i64, start = 1 : i64} : tensor<3x1xi64>
  %j = nn.iota {dim = 1 : i64} : tensor<1x3xi64>
  %c = nn.compare ge %i, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %w = nn.compare le %first, %j : tensor<3x1xi64>, tensor<1x3xi64> -> tensor<3x3xi1>
  %both = nn.and %c, %w : tensor<3x3xi1>, tensor<3x3xi1> -> tensor<3x3xi1>
  %a = nn.select %both, %zero, %low : tensor<3x3xi1>, tensor<f32>, tensor<f32> -> tensor<3x3xf32>
  %s = nn.matmul %q, %k {transpose_rhs} : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %m = nn.add %s, %a : tensor<2x4x3x3xf32>, tensor<3x3xf32> -> tensor<2x4x3x3xf32>
  %p = nn.softmax %m : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %y = nn.matmul %p, %v : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}
