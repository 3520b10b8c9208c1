// RUN: hpc-opt %s -split-input-file --hpc-fuse-regions | FileCheck %s

// Heads that are moved by slices, reshapes and transposes are strides of the attention's region: a kernel that copied them would show as a region of its own.
// What a product's region adds stays one region, which the region of attention reads; the reshape behind it is an alias.
// CHECK-LABEL: @heads
// CHECK: %[[QKV:.*]] = nn.fused "add_2x16x24_0"
// CHECK: %[[R:.*]] = nn.fused "attention_2x2x16x4_0"(%[[QKV]]) : (tensor<2x16x24xf32>) -> tensor<2x16x2x4xf32>
// CHECK: nn.slice %{{.*}} {starts = array<i64: 0, 0, 8>
// CHECK: %[[A:.*]] = nn.attention
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[A]]
// CHECK-NEXT: nn.yield %[[T]]
// CHECK: nn.reshape %[[R]]
// CHECK-NOT: nn.fused
func.func @heads(%x: tensor<2x16x24xf32>, %b: tensor<24xf32>) -> tensor<2x16x8xf32> {
  %0 = nn.add %x, %b : tensor<2x16x24xf32>, tensor<24xf32> -> tensor<2x16x24xf32>
  %q0 = nn.slice %0 {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x16x24xf32> -> tensor<2x16x8xf32>
  %k0 = nn.slice %0 {starts = array<i64: 0, 0, 8>, steps = array<i64: 1, 1, 1>} : tensor<2x16x24xf32> -> tensor<2x16x8xf32>
  %v0 = nn.slice %0 {starts = array<i64: 0, 0, 16>, steps = array<i64: 1, 1, 1>} : tensor<2x16x24xf32> -> tensor<2x16x8xf32>
  %q1 = nn.reshape %q0 : tensor<2x16x8xf32> -> tensor<2x16x2x4xf32>
  %k1 = nn.reshape %k0 : tensor<2x16x8xf32> -> tensor<2x16x2x4xf32>
  %v1 = nn.reshape %v0 : tensor<2x16x8xf32> -> tensor<2x16x2x4xf32>
  %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x16x2x4xf32> -> tensor<2x2x16x4xf32>
  %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x16x2x4xf32> -> tensor<2x2x16x4xf32>
  %v = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x16x2x4xf32> -> tensor<2x2x16x4xf32>
  %1 = nn.attention %q, %k, %v {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<2x2x16x4xf32>, tensor<2x2x16x4xf32>, tensor<2x2x16x4xf32> -> tensor<2x2x16x4xf32>
  %2 = nn.transpose %1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x2x16x4xf32> -> tensor<2x16x2x4xf32>
  %3 = nn.reshape %2 : tensor<2x16x2x4xf32> -> tensor<2x16x8xf32>
  return %3 : tensor<2x16x8xf32>
}

// -----

// A view that no strides describe ends the chain: 12 queries that lie 6 and 6 apart are copied first. Keys that are also given out are written once and read
// where they came from.
// CHECK-LABEL: @others
// CHECK-DAG: %[[Q:.*]] = nn.fused "transpose_6x2x4_0"
// CHECK-DAG: %[[K:.*]] = nn.fused "transpose_1x1x6x4_0"(%arg1)
// CHECK: %[[R:.*]] = nn.fused "attention_1x1x12x4_0"(%[[Q]], %arg1)
// CHECK: return %[[R]], %[[K]]
func.func @others(%x: tensor<2x6x4xf32>, %y: tensor<1x6x1x4xf32>) -> (tensor<1x1x12x4xf32>, tensor<1x1x6x4xf32>) {
  %t = nn.transpose %x {permutation = array<i64: 1, 0, 2>} : tensor<2x6x4xf32> -> tensor<6x2x4xf32>
  %q = nn.reshape %t : tensor<6x2x4xf32> -> tensor<1x1x12x4xf32>
  %k = nn.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x6x1x4xf32> -> tensor<1x1x6x4xf32>
  %1 = nn.attention %q, %k, %k {scale = 0.5 : f64} : tensor<1x1x12x4xf32>, tensor<1x1x6x4xf32>, tensor<1x1x6x4xf32> -> tensor<1x1x12x4xf32>
  return %1, %k : tensor<1x1x12x4xf32>, tensor<1x1x6x4xf32>
}

// -----

// A window and the padding of each row of the batch: of what they are made no buffer has the size of the scores, so the attention makes the bias itself. One that
// takes an exponential is computed once.
// CHECK-LABEL: @bias
// CHECK-NOT: nn.fused "select
// CHECK: nn.fused "attention_2x2x6x4_0"(%arg0, %arg1)
// CHECK: nn.select
// CHECK: nn.attention %{{.*}} bias
// CHECK: %[[E:.*]] = nn.fused "exp_1x2x6x6_0"(%arg2)
// CHECK: nn.fused "attention_2x2x6x4_1"({{.*}}, %[[E]])
func.func @bias(%q: tensor<2x2x6x4xf32>, %padding: tensor<2x1x1x6xf32>, %scores: tensor<1x2x6x6xf32>) -> (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) {
  %rows = nn.iota {dim = 2 : i64} : tensor<1x1x6x1xi64>
  %columns = nn.iota {dim = 3 : i64, start = -2 : i64} : tensor<1x1x1x6xi64>
  %visible = nn.compare ge %rows, %columns : tensor<1x1x6x1xi64>, tensor<1x1x1x6xi64> -> tensor<1x1x6x6xi1>
  %low = nn.constant dense<-1.0e9> : tensor<f32> : tensor<f32>
  %b = nn.select %visible, %padding, %low : tensor<1x1x6x6xi1>, tensor<2x1x1x6xf32>, tensor<f32> -> tensor<2x1x6x6xf32>
  %0 = nn.attention %q, %q, %q bias %b : tensor<2x1x6x6xf32> {scale = 0.5 : f64} : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  %e = nn.exp %scores : tensor<1x2x6x6xf32> -> tensor<1x2x6x6xf32>
  %1 = nn.attention %0, %q, %q bias %e : tensor<1x2x6x6xf32> {scale = 0.5 : f64} : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  return %0, %1 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>
}

// -----

// Gradients are written where their readers look, each into a buffer of its own.
// CHECK-LABEL: @gradient
// CHECK: %[[R:.*]]:3 = nn.fused "attention_grad_1x4x6x4_0"(%arg0, %arg1, %arg2)
// CHECK-SAME: -> (tensor<1x6x4x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>)
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @gradient(%q: tensor<1x4x6x4xf32>, %k: tensor<1x2x6x4xf32>, %g: tensor<1x6x4x4xf32>) -> (tensor<1x6x4x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>) {
  %h = nn.transpose %g {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x6x4x4xf32> -> tensor<1x4x6x4xf32>
  %dq, %dk, %dv = nn.attention_grad %q, %k, %k, %h {scale = 0.5 : f64} : tensor<1x4x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x4x6x4xf32>
      -> tensor<1x4x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>
  %t = nn.transpose %dq {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x4x6x4xf32> -> tensor<1x6x4x4xf32>
  return %t, %dk, %dv : tensor<1x6x4x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>
}

// -----

// What dropped weights are drawn by goes into the region: step and seed as they are, a rank's offset made inside, so that no mask is in any buffer.
// CHECK-LABEL: @dropout
// CHECK-NOT: nn.fused "dropout
// CHECK: nn.fused "attention_1x2x6x4_0"(%arg0, %arg1, %arg2) :
// CHECK: %[[O:.*]] = dist.offset
// CHECK: nn.attention %{{.*}} dropout %{{.*}}, %{{.*}}, %[[O]]
// CHECK-NOT: nn.fused
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
func.func @dropout(%q: tensor<1x2x6x4xf32>, %step: tensor<f64>, %seed: tensor<f64>) -> tensor<1x2x6x4xf32> {
  %o = dist.offset {dim = #dist.sharding<"[4@tp]">} : tensor<i64, #dist.sharding<"[]">>
  %1 = nn.attention %q, %q, %q dropout %step, %seed, %o : tensor<f64>, tensor<f64>, tensor<i64, #dist.sharding<"[]">> {scale = 0.5 : f64, site = 2 : i64, rate = 0.5 : f64, global_shape = array<i64: 1, 4, 1, 6, 6>, offset_dims = array<i64: 1>} : tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x6x4xf32>
  return %1 : tensor<1x2x6x4xf32>
}
}

// -----

// A step of decoding reads past and new keys and values where they lie, the new ones as a part of what a product made: put together they would be written and read once more.
// CHECK-LABEL: @past
// CHECK: %[[R:.*]] = nn.fused "attention_1x2x1x4_0"(%arg0, %arg1, %arg2) : (tensor<1x1x24xf32>, tensor<1x5x2x4xf32>, tensor<1x2x5x4xf32>)
// CHECK: nn.concat
// CHECK: nn.concat
// CHECK: nn.attention
// CHECK-NOT: nn.fused
// CHECK: return %[[R]]
func.func @past(%qkv: tensor<1x1x24xf32>, %keys: tensor<1x5x2x4xf32>, %values: tensor<1x2x5x4xf32>) -> tensor<1x2x1x4xf32> {
  %heads = nn.reshape %qkv : tensor<1x1x24xf32> -> tensor<1x1x6x4xf32>
  %q0 = nn.slice %heads {starts = array<i64: 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<1x1x6x4xf32> -> tensor<1x1x2x4xf32>
  %k0 = nn.slice %heads {starts = array<i64: 0, 0, 2, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<1x1x6x4xf32> -> tensor<1x1x2x4xf32>
  %v0 = nn.slice %heads {starts = array<i64: 0, 0, 4, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<1x1x6x4xf32> -> tensor<1x1x2x4xf32>
  %q = nn.transpose %q0 {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x1x2x4xf32> -> tensor<1x2x1x4xf32>
  %v1 = nn.transpose %v0 {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x1x2x4xf32> -> tensor<1x2x1x4xf32>
  %k1 = nn.concat %keys, %k0 {axis = 1 : i64} : tensor<1x5x2x4xf32>, tensor<1x1x2x4xf32> -> tensor<1x6x2x4xf32>
  %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x6x2x4xf32> -> tensor<1x2x6x4xf32>
  %v = nn.concat %values, %v1 {axis = 2 : i64} : tensor<1x2x5x4xf32>, tensor<1x2x1x4xf32> -> tensor<1x2x6x4xf32>
  %r = nn.attention %q, %k, %v {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  return %r : tensor<1x2x1x4xf32>
}

// -----

// Keys that are an output of the model are written anyway, and read from there; the values beside them are not.
// CHECK-LABEL: @given
// CHECK: %[[K:.*]] = nn.fused "concat_1x2x6x4_0"(%arg1, %arg2)
// CHECK: %[[R:.*]] = nn.fused "attention_1x2x1x4_0"(%arg0, %[[K]], %arg1, %arg2)
// CHECK: return %[[R]], %[[K]]
func.func @given(%q: tensor<1x2x1x4xf32>, %past: tensor<1x2x5x4xf32>, %new: tensor<1x2x1x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>) {
  %k = nn.concat %past, %new {axis = 2 : i64} : tensor<1x2x5x4xf32>, tensor<1x2x1x4xf32> -> tensor<1x2x6x4xf32>
  %v = nn.concat %past, %new {axis = 2 : i64} : tensor<1x2x5x4xf32>, tensor<1x2x1x4xf32> -> tensor<1x2x6x4xf32>
  %r = nn.attention %q, %k, %v {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  return %r, %k : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>
}

// -----

// Of many queries, two attentions, or a concatenation along heads, keys are put together once: each reader would choose among the parts again, or no part has whole keys.
// CHECK-LABEL: @not_pulled
// CHECK-COUNT-3: nn.fused "concat_
// CHECK: nn.fused "attention_1x2x9x4_0"
// CHECK-NOT: nn.concat
// CHECK: return
func.func @not_pulled(%many: tensor<1x2x9x4xf32>, %few: tensor<1x2x1x4xf32>, %past: tensor<1x2x5x4xf32>, %head: tensor<1x1x6x4xf32>)
    -> (tensor<1x2x9x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>) {
  %0 = nn.concat %past, %few {axis = 2 : i64} : tensor<1x2x5x4xf32>, tensor<1x2x1x4xf32> -> tensor<1x2x6x4xf32>
  %1 = nn.concat %few, %past {axis = 2 : i64} : tensor<1x2x1x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x6x4xf32>
  %2 = nn.concat %head, %head {axis = 1 : i64} : tensor<1x1x6x4xf32>, tensor<1x1x6x4xf32> -> tensor<1x2x6x4xf32>
  %a = nn.attention %many, %0, %0 {scale = 0.5 : f64} : tensor<1x2x9x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x9x4xf32>
  %b = nn.attention %few, %1, %1 {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  %c = nn.attention %few, %1, %1 {scale = 0.25 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  %d = nn.attention %few, %2, %2 {scale = 0.5 : f64} : tensor<1x2x1x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32> -> tensor<1x2x1x4xf32>
  return %a, %b, %c, %d : tensor<1x2x9x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>
}

// -----

// Past keys that come in f32 are rounded where they are read; new ones are rounded by the region that makes them, since they would be written in f32 else.
// CHECK-LABEL: @casts
// CHECK: %[[N:.*]] = nn.fused "cast_1x2x1x4_0"
// CHECK: nn.fused "attention_1x2x1x4_0"(%arg0, %arg1, %[[N]])
// CHECK: nn.cast
// CHECK: nn.concat
// CHECK: nn.attention
// CHECK-NOT: nn.fused
func.func @casts(%q: tensor<1x2x1x4xbf16>, %past: tensor<1x2x5x4xf32>, %new: tensor<1x2x1x4xf32>, %bias: tensor<4xf32>) -> tensor<1x2x1x4xbf16> {
  %p = nn.cast %past : tensor<1x2x5x4xf32> -> tensor<1x2x5x4xbf16>
  %0 = nn.add %new, %bias : tensor<1x2x1x4xf32>, tensor<4xf32> -> tensor<1x2x1x4xf32>
  %n = nn.cast %0 : tensor<1x2x1x4xf32> -> tensor<1x2x1x4xbf16>
  %k = nn.concat %p, %n {axis = 2 : i64} : tensor<1x2x5x4xbf16>, tensor<1x2x1x4xbf16> -> tensor<1x2x6x4xbf16>
  %r = nn.attention %q, %k, %k {scale = 0.5 : f64} : tensor<1x2x1x4xbf16>, tensor<1x2x6x4xbf16>, tensor<1x2x6x4xbf16> -> tensor<1x2x1x4xbf16>
  return %r : tensor<1x2x1x4xbf16>
}
