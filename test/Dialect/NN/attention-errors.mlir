// RUN: hpc-opt %s --split-input-file --verify-diagnostics

// Keys in another type than queries: no library has such a product, and none should have to convert in secret.
func.func @mixed(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xbf16>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C4) query, key and value need one float element type and the result a float one}}
  %0 = nn.attention %q, %k, %k {scale = 1.0} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xbf16>, tensor<1x2x3x4xbf16> -> tensor<1x2x3x4xf32>
  return %0 : tensor<1x2x3x4xf32>
}

// -----

// (C5) A seed without a rate would drop nothing in silence.
func.func @seed(%q: tensor<1x2x3x4xf32>, %s: tensor<f64>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C5) `dropout` operands are step, seed and offsets, and need 'site' and 'rate'}}
  %0 = nn.attention %q, %q, %q dropout %s, %s : tensor<f64>, tensor<f64> {scale = 1.0} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %0 : tensor<1x2x3x4xf32>
}

// -----

// (C5) A rate without a seed likewise, in the gradient as in the attention.
func.func @rate(%q: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C5) 'site' needs step and seed as `dropout` operands, site and rate}}
  %0:3 = nn.attention_grad %q, %q, %q, %q {scale = 1.0, site = 1 : i64, rate = 0.5 : f64} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>
  return %0#0 : tensor<1x2x3x4xf32>
}

// -----

// (C5) All weights dropped would be scaled by infinity.
func.func @all(%q: tensor<1x2x3x4xf32>, %s: tensor<f64>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C5) rate 1.000000e+00 must be at least 0 and less than 1, site 1 from 0 to 2^32 - 1}}
  %0 = nn.attention %q, %q, %q dropout %s, %s : tensor<f64>, tensor<f64> {scale = 1.0, site = 1 : i64, rate = 1.0 : f64} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %0 : tensor<1x2x3x4xf32>
}

// -----

// (C5) An offset without the whole shape says nothing about positions.
func.func @offset(%q: tensor<1x2x3x4xf32>, %s: tensor<f64>, %o: tensor<i64>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C5) 1 offsets, of dims [1] of a whole tensor [1, 2, 1, 3, 3], do not fit a tensor of rank 5}}
  %0 = nn.attention %q, %q, %q dropout %s, %s, %o : tensor<f64>, tensor<f64>, tensor<i64> {scale = 1.0, site = 1 : i64, rate = 0.5 : f64, offset_dims = array<i64: 1>} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %0 : tensor<1x2x3x4xf32>
}

// -----

// (C3) A mask of numbers would be read as bools.
func.func @numbers(%q: tensor<1x2x3x4xf32>, %m: tensor<1x1x3x3xf32>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C3) 'hidden' needs `visible`, of bools}}
  %0 = nn.attention %q, %q, %q visible %m : tensor<1x1x3x3xf32> {scale = 1.0} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %0 : tensor<1x2x3x4xf32>
}

// -----

// (C3) A number for hidden scores without a mask that hides any would do nothing, in the gradient as in the attention.
func.func @hidden(%q: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C3) 'hidden' needs `visible`, of bools}}
  %0:3 = nn.attention_grad %q, %q, %q, %q {scale = 1.0, hidden = -1.0 : f64} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>
  return %0#0 : tensor<1x2x3x4xf32>
}

// -----

// (C3) A mask for other scores.
func.func @shape(%q: tensor<1x2x3x4xf32>, %m: tensor<1x1x3x4xi1>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C3) visible 'tensor<1x1x3x4xi1>' must have rank 4 and broadcast to the scores}}
  %0 = nn.attention %q, %q, %q visible %m : tensor<1x1x3x4xi1> {scale = 1.0} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %0 : tensor<1x2x3x4xf32>
}

// -----

// (C6) Positions decide about the causal mask alone: without one nothing reads them.
func.func @positions(%q: tensor<1x2x3x4xf32>, %p: tensor<i64>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C6) 'query_start' needs 'causal_offset': nothing else reads positions}}
  %0 = nn.attention %q, %q, %q query_start %p : tensor<i64> {scale = 1.0} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %0 : tensor<1x2x3x4xf32>
}

// -----

// (C6) A position for each row of the batch is not what a start is; in the gradient as in the attention.
func.func @each(%q: tensor<2x2x3x4xf32>, %p: tensor<2xi64>) -> tensor<2x2x3x4xf32> {
  // expected-error @+1 {{(C6) 'key_start' takes numbers of rank 0, got 'tensor<2xi64>'}}
  %0:3 = nn.attention_grad %q, %q, %q, %q key_start %p : tensor<2xi64> {scale = 1.0, causal_offset = 0 : i64} : tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>
  return %0#0 : tensor<2x2x3x4xf32>
}

// -----

// (C6) A bool is no position; each of several starts is looked at.
func.func @bool(%q: tensor<1x2x3x4xf32>, %p: tensor<f64>, %b: tensor<i1>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C6) 'query_start' takes numbers of rank 0, got 'tensor<i1>'}}
  %0 = nn.attention %q, %q, %q query_start %p, %b : tensor<f64>, tensor<i1> {scale = 1.0, causal_offset = 0 : i64} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %0 : tensor<1x2x3x4xf32>
}

// -----

// (C7) Positions that no mask and no dropout reads.
func.func @unread(%q: tensor<1x2x3x4xf32>, %p: tensor<3xi64>) -> tensor<1x2x3x4xf32> {
  // expected-error @+1 {{(C7) 'query_positions' needs 'causal_offset' or `dropout`: nothing else reads positions}}
  %0 = nn.attention %q, %q, %q query_positions %p : tensor<3xi64> {scale = 1.0} : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %0 : tensor<1x2x3x4xf32>
}

// -----

// (C7) A position for each query, and no other number of them; in the gradient as in the attention.
func.func @other(%q: tensor<2x2x3x4xf32>, %p: tensor<2xi64>) -> tensor<2x2x3x4xf32> {
  // expected-error @+1 {{(C7) 'query_positions' must be integers [3] or, without dropout, [2, 3], got 'tensor<2xi64>'}}
  %0:3 = nn.attention_grad %q, %q, %q, %q query_positions %p : tensor<2xi64> {scale = 1.0, causal_offset = 0 : i64} : tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>
  return %0#0 : tensor<2x2x3x4xf32>
}

// -----

// (C7) Rounded positions would not be those of their queries.
func.func @floats(%q: tensor<2x2x3x4xf32>, %p: tensor<3xf32>) -> tensor<2x2x3x4xf32> {
  // expected-error @+1 {{(C7) 'query_positions' must be integers [3] or, without dropout, [2, 3], got 'tensor<3xf32>'}}
  %0 = nn.attention %q, %q, %q query_positions %p : tensor<3xf32> {scale = 1.0, causal_offset = 0 : i64} : tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x4xf32>
  return %0 : tensor<2x2x3x4xf32>
}

// -----

// (C7) Dropout draws for a query of all sequences by one position.
func.func @eachDrops(%q: tensor<2x2x3x4xf32>, %p: tensor<2x3xi64>, %s: tensor<i64>) -> tensor<2x2x3x4xf32> {
  // expected-error @+1 {{(C7) 'query_positions' must be integers [3] or, without dropout, [2, 3], got 'tensor<2x3xi64>'}}
  %0 = nn.attention %q, %q, %q dropout %s, %s : tensor<i64>, tensor<i64> query_positions %p : tensor<2x3xi64> {scale = 1.0, causal_offset = 0 : i64, site = 0 : i64, rate = 0.5 : f64} : tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x4xf32>
  return %0 : tensor<2x2x3x4xf32>
}
