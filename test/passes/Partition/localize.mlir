// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-decompose-sharded --hpc-collect-partials --hpc-insert-reshards --hpc-fill-tails --hpc-localize --hpc-verify-partitioned 2>/dev/null | FileCheck %s

// The forward pass of a GPT-2 block: the boxes of one rank and the collectives, and nothing else.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: func.func @main(%arg0: tensor<2x33xi64, #dist.sharding<"[4@mb, 33]">>) -> tensor<2x33x252xf32, #dist.sharding<"[4@mb, 33, 503@tp]">>
// CHECK: nn.parameter "wte" {{.*}} : tensor<252x40xf32, #dist.sharding<"[503@tp, 40]">>
// CHECK: nn.parameter "attn.c_attn.weight" {{.*}} : tensor<40x72xf32, #dist.sharding<"[40, (3, 5@tp, 8)]">>
// CHECK: nn.parameter "attn.c_proj.weight" {{.*}} : tensor<24x40xf32, #dist.sharding<"[(5@tp, 8), 40]">>
// CHECK: nn.parameter "mlp.c_fc.weight" {{.*}} : tensor<40x36xf32, #dist.sharding<"[40, 72@tp]">>
// CHECK: %[[OFFSET:.*]] = dist.offset {dim = #dist.sharding<"[503@tp]">}
// CHECK: %[[TOKENS:.*]] = nn.embedding %{{.*}}, %arg0 offset %[[OFFSET]] {{.*}} -> tensor<2x33x40xf32, #dist.sharding<"[4@mb, 33, 40] partial{tp}">>
// CHECK: dist.all_reduce %[[TOKENS]] {{.*}}axes = ["tp"]{{.*}}cause = "embedding sums over tp and add needs the whole sum"
// CHECK-NOT: dist.{{all|fill|slice|reduce|permute}}
// CHECK: nn.matmul {{.*}} -> tensor<2x33x72xf32
// CHECK: nn.slice {{.*}}starts = array<i64: 0, 0, 0>{{.*}} -> tensor<2x33x24xf32
// CHECK: nn.slice {{.*}}starts = array<i64: 0, 0, 24>{{.*}} -> tensor<2x33x24xf32
// CHECK: nn.slice {{.*}}starts = array<i64: 0, 0, 48>{{.*}} -> tensor<2x33x24xf32
// CHECK: nn.attention {{.*}} -> tensor<2x3x33x8xf32
// CHECK: %[[HEADS:.*]] = nn.reshape {{.*}} -> tensor<2x33x24xf32
// CHECK-NEXT: %[[FILLED:.*]] = dist.fill_tail %[[HEADS]] {dims = array<i64: 2>, hpc.id_of = {{.*}}, value = 0.000000e+00 : f32}
// CHECK-NEXT: %[[PROJ:.*]] = nn.matmul %[[FILLED]], {{.*}} -> tensor<2x33x40xf32, #dist.sharding<"[4@mb, 33, 40] partial{tp}">>
// CHECK-NEXT: dist.all_reduce %[[PROJ]]
// CHECK: nn.gelu {{.*}} -> tensor<2x33x36xf32
// CHECK-NEXT: %[[MLP:.*]] = nn.matmul
// CHECK-NEXT: dist.all_reduce %[[MLP]]
// CHECK-NOT: dist.{{all|reduce|permute}}
// CHECK: %[[LOGITS:.*]] = nn.matmul {{.*}} -> tensor<2x33x252xf32
// CHECK-NEXT: return %[[LOGITS]]
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%ids: tensor<4x33xi64> {dist.seed = #dist.sharding<"[4@(mb, dp), 33]">}) -> tensor<4x33x503xf32> {
    %wte = nn.parameter "wte" {value = dense<1.0> : tensor<503x40xf32>, dist.seed = #dist.sharding<"[503@tp, 40]">} : tensor<503x40xf32>
    %wpe = nn.parameter "wpe" {value = dense<1.0> : tensor<33x40xf32>} : tensor<33x40xf32>
    %ln1w = nn.parameter "ln_1.weight" {value = dense<1.0> : tensor<40xf32>} : tensor<40xf32>
    %ln1b = nn.parameter "ln_1.bias" {value = dense<1.0> : tensor<40xf32>} : tensor<40xf32>
    %attnw = nn.parameter "attn.c_attn.weight" {value = dense<1.0> : tensor<40x120xf32>} : tensor<40x120xf32>
    %attnb = nn.parameter "attn.c_attn.bias" {value = dense<1.0> : tensor<120xf32>} : tensor<120xf32>
    %projw = nn.parameter "attn.c_proj.weight" {value = dense<1.0> : tensor<40x40xf32>} : tensor<40x40xf32>
    %projb = nn.parameter "attn.c_proj.bias" {value = dense<1.0> : tensor<40xf32>} : tensor<40xf32>
    %fcw = nn.parameter "mlp.c_fc.weight" {value = dense<1.0> : tensor<40x72xf32>, dist.seed = #dist.sharding<"[40, 72@tp]">} : tensor<40x72xf32>
    %fcb = nn.parameter "mlp.c_fc.bias" {value = dense<1.0> : tensor<72xf32>} : tensor<72xf32>
    %mprojw = nn.parameter "mlp.c_proj.weight" {value = dense<1.0> : tensor<72x40xf32>} : tensor<72x40xf32>
    %mprojb = nn.parameter "mlp.c_proj.bias" {value = dense<1.0> : tensor<40xf32>} : tensor<40xf32>

    %tok = nn.embedding %wte, %ids {vocabulary = 503 : i64} : tensor<503x40xf32>, tensor<4x33xi64> -> tensor<4x33x40xf32> loc("/wte/Gather")
    %x0 = nn.add %tok, %wpe : tensor<4x33x40xf32>, tensor<33x40xf32> -> tensor<4x33x40xf32> loc("/wpe/Add")
    %n1 = nn.layer_norm %x0 weight %ln1w : tensor<40xf32> bias %ln1b : tensor<40xf32> {epsilon = 1.0e-5 : f64} : tensor<4x33x40xf32> -> tensor<4x33x40xf32> loc("/ln_1")
    %qkv0 = nn.matmul %n1, %attnw : tensor<4x33x40xf32>, tensor<40x120xf32> -> tensor<4x33x120xf32> loc("/attn/c_attn/MatMul")
    %qkv = nn.add %qkv0, %attnb : tensor<4x33x120xf32>, tensor<120xf32> -> tensor<4x33x120xf32> loc("/attn/c_attn/Add")
    %q0 = nn.slice %qkv {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<4x33x120xf32> -> tensor<4x33x40xf32> loc("/attn/Split")
    %k0 = nn.slice %qkv {starts = array<i64: 0, 0, 40>, steps = array<i64: 1, 1, 1>} : tensor<4x33x120xf32> -> tensor<4x33x40xf32> loc("/attn/Split")
    %v0 = nn.slice %qkv {starts = array<i64: 0, 0, 80>, steps = array<i64: 1, 1, 1>} : tensor<4x33x120xf32> -> tensor<4x33x40xf32> loc("/attn/Split")
    %q1 = nn.reshape %q0 : tensor<4x33x40xf32> -> tensor<4x33x5x8xf32> loc("/attn/Reshape")
    %k1 = nn.reshape %k0 : tensor<4x33x40xf32> -> tensor<4x33x5x8xf32> loc("/attn/Reshape_1")
    %v1 = nn.reshape %v0 : tensor<4x33x40xf32> -> tensor<4x33x5x8xf32> loc("/attn/Reshape_2")
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x33x5x8xf32> -> tensor<4x5x33x8xf32> loc("/attn/Transpose")
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x33x5x8xf32> -> tensor<4x5x33x8xf32> loc("/attn/Transpose_1")
    %v = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x33x5x8xf32> -> tensor<4x5x33x8xf32> loc("/attn/Transpose_2")
    %a = nn.attention %q, %k, %v {scale = 0.35355339059327373 : f64, causal_offset = 0 : i64, dist.seed = #dist.sharding<"[4, 5@tp, 33, 8]">} : tensor<4x5x33x8xf32>, tensor<4x5x33x8xf32>, tensor<4x5x33x8xf32> -> tensor<4x5x33x8xf32> loc("/attn/Softmax")
    %at = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x5x33x8xf32> -> tensor<4x33x5x8xf32> loc("/attn/Transpose_3")
    %am = nn.reshape %at : tensor<4x33x5x8xf32> -> tensor<4x33x40xf32> loc("/attn/Reshape_3")
    %p0 = nn.matmul %am, %projw : tensor<4x33x40xf32>, tensor<40x40xf32> -> tensor<4x33x40xf32> loc("/attn/c_proj/MatMul")
    %p = nn.add %p0, %projb : tensor<4x33x40xf32>, tensor<40xf32> -> tensor<4x33x40xf32> loc("/attn/c_proj/Add")
    %x1 = nn.add %x0, %p : tensor<4x33x40xf32>, tensor<4x33x40xf32> -> tensor<4x33x40xf32> loc("/Add")
    %n2 = nn.layer_norm %x1 {epsilon = 1.0e-5 : f64} : tensor<4x33x40xf32> -> tensor<4x33x40xf32> loc("/ln_2")
    %h0 = nn.matmul %n2, %fcw : tensor<4x33x40xf32>, tensor<40x72xf32> -> tensor<4x33x72xf32> loc("/mlp/c_fc/MatMul")
    %h1 = nn.add %h0, %fcb : tensor<4x33x72xf32>, tensor<72xf32> -> tensor<4x33x72xf32> loc("/mlp/c_fc/Add")
    %h = nn.gelu %h1 {tanh_approximation} : tensor<4x33x72xf32> -> tensor<4x33x72xf32> loc("/mlp/act")
    %m0 = nn.matmul %h, %mprojw : tensor<4x33x72xf32>, tensor<72x40xf32> -> tensor<4x33x40xf32> loc("/mlp/c_proj/MatMul")
    %m = nn.add %m0, %mprojb : tensor<4x33x40xf32>, tensor<40xf32> -> tensor<4x33x40xf32> loc("/mlp/c_proj/Add")
    %x2 = nn.add %x1, %m : tensor<4x33x40xf32>, tensor<4x33x40xf32> -> tensor<4x33x40xf32> loc("/Add_1")
    %nf = nn.layer_norm %x2 {epsilon = 1.0e-5 : f64} : tensor<4x33x40xf32> -> tensor<4x33x40xf32> loc("/ln_f")
    %logits = nn.matmul %nf, %wte {transpose_rhs} : tensor<4x33x40xf32>, tensor<503x40xf32> -> tensor<4x33x503xf32> loc("/lm_head/MatMul")
    return %logits : tensor<4x33x503xf32>
  }
}

// -----

// ColoTensor's layout: gathers before the first norm, the split and the residual; all-reduces after the MLP and the head.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: dist.all_gather {{.*}}layer_norm needs dim {{[0-9]}} whole
// CHECK-NEXT: {{.*}} = nn.layer_norm
// CHECK: dist.all_gather {{.*}}slice needs dim {{[0-9]}} whole
// CHECK-NEXT: {{.*}} = nn.slice
// CHECK-NOT: dist.{{all|reduce|permute}}
// CHECK: nn.attention
// CHECK: dist.all_gather {{.*}}add needs dim {{[0-9]}} whole
// CHECK-NOT: dist.{{all|reduce|permute}}
// CHECK: dist.all_reduce {{.*}}matmul sums over tp
// CHECK-NOT: dist.{{all|reduce|permute}}
// CHECK: dist.slice
// CHECK-NEXT: {{.*}} = nn.matmul
// CHECK-NEXT: dist.all_reduce {{.*}}matmul sums over tp
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=1:data, tp=2:tensor">} {
  func.func @main(%ids: tensor<4x33xi64>) -> tensor<4x33x503xf32> {
    %wte = nn.parameter "wte" {value = dense<1.0> : tensor<503x40xf32>, dist.seed = #dist.seed<"[503, 40@tp]", priority = 0, origin = "sidecar">} : tensor<503x40xf32>
    %wpe = nn.parameter "wpe" {value = dense<1.0> : tensor<33x40xf32>} : tensor<33x40xf32>
    %attnw = nn.parameter "attn.c_attn.weight" {value = dense<1.0> : tensor<40x120xf32>, dist.seed = #dist.seed<"[40, 120@tp]", priority = 0, origin = "sidecar">} : tensor<40x120xf32>
    %attnb = nn.parameter "attn.c_attn.bias" {value = dense<1.0> : tensor<120xf32>} : tensor<120xf32>
    %projw = nn.parameter "attn.c_proj.weight" {value = dense<1.0> : tensor<40x40xf32>, dist.seed = #dist.seed<"[40, 40@tp]", priority = 0, origin = "sidecar">} : tensor<40x40xf32>
    %projb = nn.parameter "attn.c_proj.bias" {value = dense<1.0> : tensor<40xf32>} : tensor<40xf32>
    %fcw = nn.parameter "mlp.c_fc.weight" {value = dense<1.0> : tensor<40x72xf32>, dist.seed = #dist.seed<"[40, 72@tp]", priority = 0, origin = "sidecar">} : tensor<40x72xf32>
    %fcb = nn.parameter "mlp.c_fc.bias" {value = dense<1.0> : tensor<72xf32>} : tensor<72xf32>
    %mprojw = nn.parameter "mlp.c_proj.weight" {value = dense<1.0> : tensor<72x40xf32>, dist.seed = #dist.seed<"[72@tp, 40]", priority = 0, origin = "sidecar">} : tensor<72x40xf32>
    %mprojb = nn.parameter "mlp.c_proj.bias" {value = dense<1.0> : tensor<40xf32>} : tensor<40xf32>

    %tok = nn.embedding %wte, %ids {vocabulary = 503 : i64} : tensor<503x40xf32>, tensor<4x33xi64> -> tensor<4x33x40xf32> loc("/wte/Gather")
    %x0 = nn.add %tok, %wpe : tensor<4x33x40xf32>, tensor<33x40xf32> -> tensor<4x33x40xf32> loc("/wpe/Add")
    %n1 = nn.layer_norm %x0 {epsilon = 1.0e-5 : f64} : tensor<4x33x40xf32> -> tensor<4x33x40xf32> loc("/ln_1")
    %qkv0 = nn.matmul %n1, %attnw : tensor<4x33x40xf32>, tensor<40x120xf32> -> tensor<4x33x120xf32> loc("/attn/c_attn/MatMul")
    %qkv = nn.add %qkv0, %attnb : tensor<4x33x120xf32>, tensor<120xf32> -> tensor<4x33x120xf32> loc("/attn/c_attn/Add")
    %q0 = nn.slice %qkv {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<4x33x120xf32> -> tensor<4x33x40xf32> loc("/attn/Split")
    %k0 = nn.slice %qkv {starts = array<i64: 0, 0, 40>, steps = array<i64: 1, 1, 1>} : tensor<4x33x120xf32> -> tensor<4x33x40xf32> loc("/attn/Split")
    %v0 = nn.slice %qkv {starts = array<i64: 0, 0, 80>, steps = array<i64: 1, 1, 1>} : tensor<4x33x120xf32> -> tensor<4x33x40xf32> loc("/attn/Split")
    %q1 = nn.reshape %q0 : tensor<4x33x40xf32> -> tensor<4x33x5x8xf32> loc("/attn/Reshape")
    %k1 = nn.reshape %k0 : tensor<4x33x40xf32> -> tensor<4x33x5x8xf32> loc("/attn/Reshape_1")
    %v1 = nn.reshape %v0 : tensor<4x33x40xf32> -> tensor<4x33x5x8xf32> loc("/attn/Reshape_2")
    %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x33x5x8xf32> -> tensor<4x5x33x8xf32> loc("/attn/Transpose")
    %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x33x5x8xf32> -> tensor<4x5x33x8xf32> loc("/attn/Transpose_1")
    %v = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x33x5x8xf32> -> tensor<4x5x33x8xf32> loc("/attn/Transpose_2")
    %a = nn.attention %q, %k, %v {scale = 0.35355339059327373 : f64, causal_offset = 0 : i64} : tensor<4x5x33x8xf32>, tensor<4x5x33x8xf32>, tensor<4x5x33x8xf32> -> tensor<4x5x33x8xf32> loc("/attn/Softmax")
    %at = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x5x33x8xf32> -> tensor<4x33x5x8xf32> loc("/attn/Transpose_3")
    %am = nn.reshape %at : tensor<4x33x5x8xf32> -> tensor<4x33x40xf32> loc("/attn/Reshape_3")
    %p0 = nn.matmul %am, %projw : tensor<4x33x40xf32>, tensor<40x40xf32> -> tensor<4x33x40xf32> loc("/attn/c_proj/MatMul")
    %p = nn.add %p0, %projb : tensor<4x33x40xf32>, tensor<40xf32> -> tensor<4x33x40xf32> loc("/attn/c_proj/Add")
    %x1 = nn.add %x0, %p : tensor<4x33x40xf32>, tensor<4x33x40xf32> -> tensor<4x33x40xf32> loc("/Add")
    %n2 = nn.layer_norm %x1 {epsilon = 1.0e-5 : f64} : tensor<4x33x40xf32> -> tensor<4x33x40xf32> loc("/ln_2")
    %h0 = nn.matmul %n2, %fcw : tensor<4x33x40xf32>, tensor<40x72xf32> -> tensor<4x33x72xf32> loc("/mlp/c_fc/MatMul")
    %h1 = nn.add %h0, %fcb : tensor<4x33x72xf32>, tensor<72xf32> -> tensor<4x33x72xf32> loc("/mlp/c_fc/Add")
    %h = nn.gelu %h1 {tanh_approximation} : tensor<4x33x72xf32> -> tensor<4x33x72xf32> loc("/mlp/act")
    %m0 = nn.matmul %h, %mprojw : tensor<4x33x72xf32>, tensor<72x40xf32> -> tensor<4x33x40xf32> loc("/mlp/c_proj/MatMul")
    %m = nn.add %m0, %mprojb : tensor<4x33x40xf32>, tensor<40xf32> -> tensor<4x33x40xf32> loc("/mlp/c_proj/Add")
    %x2 = nn.add %x1, %m : tensor<4x33x40xf32>, tensor<4x33x40xf32> -> tensor<4x33x40xf32> loc("/Add_1")
    %nf = nn.layer_norm %x2 {epsilon = 1.0e-5 : f64} : tensor<4x33x40xf32> -> tensor<4x33x40xf32> loc("/ln_f")
    %logits = nn.matmul %nf, %wte {transpose_rhs} : tensor<4x33x40xf32>, tensor<503x40xf32> -> tensor<4x33x503xf32> loc("/lm_head/MatMul")
    return %logits : tensor<4x33x503xf32>
  }
}

// -----

// Max over a cut uneven dim: the lowest value in the tail, an all-reduce of that kind right after, which carries the op's id.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %[[F:.*]] = dist.fill_tail {{.*}}value = 0xFF800000 : f32
// CHECK: %[[M:.*]] = nn.reduce max %[[F]] {axes = array<i64: 1>}
// CHECK-NEXT: dist.all_reduce %[[M]] {{.*}}hpc.id = {{.*}}kind = {{.*}}max
// CHECK-NEXT: return
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<3x7xf32> {dist.seed = #dist.sharding<"[3, 7@tp]">}) -> tensor<3x1xf32> {
    %m = nn.reduce max %x {axes = array<i64: 1>} : tensor<3x7xf32> -> tensor<3x1xf32>
    return %m : tensor<3x1xf32>
  }
}

// -----

// A constant is whole and sliced where a cut op reads it.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %[[C:.*]] = nn.constant {{.*}} : tensor<6xf32, #dist.sharding<"[6]">>
// CHECK: %[[S:.*]] = dist.slice %[[C]] {{.*}}axis = "tp"{{.*}} -> tensor<3xf32, #dist.sharding<"[6@tp]">>
// CHECK: nn.mul %arg0, %[[S]]
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x6xf32> {dist.seed = #dist.sharding<"[2, 6@tp]">}) -> tensor<2x6xf32> {
    %c = nn.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32> : tensor<6xf32>
    %y = nn.mul %x, %c : tensor<2x6xf32>, tensor<6xf32> -> tensor<2x6xf32>
    return %y : tensor<2x6xf32>
  }
}

// -----

// A gradient of a weight that ranks store in pieces: scattered in every micro-batch, so that a rank accumulates a piece, whatever the level of ZeRO; two axes that are summed at once are one all-reduce.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %[[G:.*]] = nn.matmul {{.*}}transpose_lhs
// CHECK-NEXT: %[[R:.*]] = dist.reduce_scatter %[[G]] {{.*}}axis = "dp"
// CHECK-NEXT: dist.accumulate %[[R]] {{.*}}axes = ["mb"]
// CHECK: %[[L:.*]] = nn.reduce sum
// CHECK: %[[T:.*]] = dist.accumulate %[[L]]
// CHECK-NEXT: dist.all_reduce %[[T]] {{.*}}axes = ["dp", "tp"]
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data, tp=2:tensor">} {
  func.func @main(%x: tensor<8x6xf32> {dist.seed = #dist.sharding<"[8@(mb, dp), 6]">}) -> (tensor<1x1xf32>, tensor<6x4xf32> {nn.writes = "w"}) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x4xf32>, dist.seed = #dist.sharding<"[6@dp, 4@tp]">} : tensor<6x4xf32>
    %y = nn.matmul %x, %w : tensor<8x6xf32>, tensor<6x4xf32> -> tensor<8x4xf32>
    %t = nn.tanh %y : tensor<8x4xf32> -> tensor<8x4xf32>
    %g = nn.matmul %x, %t {transpose_lhs} : tensor<8x6xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
    %n = nn.sub %w, %g : tensor<6x4xf32>, tensor<6x4xf32> -> tensor<6x4xf32>
    %l = nn.reduce sum %t {axes = array<i64: 0, 1>} : tensor<8x4xf32> -> tensor<1x1xf32>
    return %l, %n : tensor<1x1xf32>, tensor<6x4xf32>
  }
}

// -----

// Queries of a causal attention are cut, keys are whole: the rank's offset is one more start beside that of the program. The gradient sums over queries, so their
// padding is 0, also where dropout reads the same offset; what keys and values get is partial.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %[[O:.*]] = dist.offset {dim = #dist.sharding<"[7@tp]">}
// CHECK: nn.attention %arg0, %arg1, %arg1 query_start %arg3, %[[O]] : {{.*}} -> tensor<1x2x4x8xf32
// CHECK: %[[Q:.*]] = dist.fill_tail
// CHECK: %[[G:.*]] = dist.offset {dim = #dist.sharding<"[7@tp]">}
// CHECK: nn.attention_grad %[[Q]], %arg1, %arg1, %arg2 dropout %arg4, %arg4, %[[G]] : {{.*}} query_start %arg3, %[[G]] :
// CHECK-SAME: global_shape = array<i64: 1, 1, 2, 7, 7>{{.*}}offset_dims = array<i64: 3>
// CHECK-SAME: -> tensor<1x2x4x8xf32, #dist.sharding<"[1, 2, 7@tp, 8]">>, tensor<1x1x7x8xf32, #dist.sharding<"[1, 1, 7, 8] partial{tp}">>, tensor<1x1x7x8xf32, #dist.sharding<"[1, 1, 7, 8] partial{tp}">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%q: tensor<1x2x7x8xf32> {dist.seed = #dist.sharding<"[1, 2, 7@tp, 8]">}, %k: tensor<1x1x7x8xf32>, %g: tensor<1x2x7x8xf32>, %s: tensor<i64>, %r: tensor<f64>)
      -> (tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>, tensor<1x1x7x8xf32>) {
    %0 = nn.attention %q, %k, %k query_start %s : tensor<i64> {scale = 0.5 : f64, causal_offset = 0 : i64} : tensor<1x2x7x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32> -> tensor<1x2x7x8xf32>
    %1 = nn.exp %q : tensor<1x2x7x8xf32> -> tensor<1x2x7x8xf32>
    %2:3 = nn.attention_grad %1, %k, %k, %g dropout %r, %r : tensor<f64>, tensor<f64> query_start %s : tensor<i64> {scale = 0.5 : f64, causal_offset = 0 : i64, site = 1 : i64, rate = 0.5 : f64}
        : tensor<1x2x7x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32>, tensor<1x2x7x8xf32> -> tensor<1x2x7x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32>
    return %0, %2#0, %2#1 : tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>, tensor<1x1x7x8xf32>
  }
}

// -----

// A gradient whose sums have to be whole: queries and their gradient are gathered, nothing of it is partial.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: dist.all_gather %arg0
// CHECK: nn.attention_grad {{.*}}whole_sums{{.*}} -> tensor<1x2x7x8xf32, #dist.sharding<"[1, 2, 7, 8]">>, tensor<1x1x7x8xf32, #dist.sharding<"[1, 1, 7, 8]">>, tensor<1x1x7x8xf32, #dist.sharding<"[1, 1, 7, 8]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%q: tensor<1x2x7x8xf32> {dist.seed = #dist.sharding<"[1, 2, 7@tp, 8]">}, %k: tensor<1x1x7x8xf32>, %g: tensor<1x2x7x8xf32>) -> (tensor<1x2x7x8xf32>, tensor<1x1x7x8xf32>) {
    %2:3 = nn.attention_grad %q, %k, %k, %g {scale = 0.5 : f64, causal_offset = 0 : i64, whole_sums}
        : tensor<1x2x7x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32>, tensor<1x2x7x8xf32> -> tensor<1x2x7x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32>
    return %2#0, %2#1 : tensor<1x2x7x8xf32>, tensor<1x1x7x8xf32>
  }
}

// -----

// Heads that share keys are cut and not full on the last rank: their gradients are summed, with dropout as without, so their padding is 0.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %[[Q:.*]] = dist.fill_tail {{.*}}dims = array<i64: 1>
// CHECK: nn.attention_grad %[[Q]], %arg1, %arg1, %arg2 dropout
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%q: tensor<1x3x4x8xf32> {dist.seed = #dist.sharding<"[1, 3@tp, 4, 8]">}, %k: tensor<1x1x4x8xf32>, %g: tensor<1x3x4x8xf32>, %r: tensor<f64>) -> (tensor<1x3x4x8xf32>, tensor<1x1x4x8xf32>) {
    %1 = nn.exp %q : tensor<1x3x4x8xf32> -> tensor<1x3x4x8xf32>
    %2:3 = nn.attention_grad %1, %k, %k, %g dropout %r, %r : tensor<f64>, tensor<f64> {scale = 0.5 : f64, site = 1 : i64, rate = 0.5 : f64}
        : tensor<1x3x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x3x4x8xf32> -> tensor<1x3x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>
    return %2#0, %2#1 : tensor<1x3x4x8xf32>, tensor<1x1x4x8xf32>
  }
}
