// RUN: hpc-opt %s -split-input-file --hpc-propagate-shardings --hpc-verify-propagated 2>/dev/null | FileCheck %s

// The forward pass of a GPT-2 block, cut as Megatron cuts it: fails if any of its shardings changes.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: func.func @main(%arg0: tensor<4x33xi64, #dist.sharding<"[4@mb, 33]">>) -> tensor<4x33x503xf32, #dist.sharding<"[4@mb, 33, 503@tp]">>
// CHECK: nn.parameter "wte" {{.*}} : tensor<503x40xf32, #dist.sharding<"[503@tp, 40]">>
// CHECK: nn.parameter "wpe" {{.*}} : tensor<33x40xf32, #dist.sharding<"[33, 40]">>
// CHECK: nn.parameter "attn.c_attn.weight" {{.*}} : tensor<40x120xf32, #dist.sharding<"[40, (3, 5@tp, 8)]">>
// CHECK: nn.parameter "attn.c_attn.bias" {{.*}} : tensor<120xf32, #dist.sharding<"[(3, 5@tp, 8)]">>
// CHECK: nn.parameter "attn.c_proj.weight" {{.*}} : tensor<40x40xf32, #dist.sharding<"[(5@tp, 8), 40]">>
// CHECK: nn.parameter "attn.c_proj.bias" {{.*}} : tensor<40xf32, #dist.sharding<"[40]">>
// CHECK: nn.parameter "mlp.c_fc.weight" {{.*}} : tensor<40x72xf32, #dist.sharding<"[40, 72@tp]">>
// CHECK: nn.parameter "mlp.c_fc.bias" {{.*}} : tensor<72xf32, #dist.sharding<"[72@tp]">>
// CHECK: nn.parameter "mlp.c_proj.weight" {{.*}} : tensor<72x40xf32, #dist.sharding<"[72@tp, 40]">>
// CHECK: nn.embedding {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4@mb, 33, 40] partial{tp}">>
// CHECK: nn.add {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4@mb, 33, 40]">>
// CHECK: nn.layer_norm {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4@mb, 33, 40]">>
// CHECK: nn.matmul {{.*}} -> tensor<4x33x120xf32, #dist.sharding<"[4@mb, 33, (3, 5@tp, 8)]">>
// CHECK: nn.add {{.*}} -> tensor<4x33x120xf32, #dist.sharding<"[4@mb, 33, (3, 5@tp, 8)]">>
// CHECK-COUNT-3: nn.slice {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4@mb, 33, (5@tp, 8)]">>
// CHECK-COUNT-3: nn.reshape {{.*}} -> tensor<4x33x5x8xf32, #dist.sharding<"[4@mb, 33, 5@tp, 8]">>
// CHECK-COUNT-3: nn.transpose {{.*}} -> tensor<4x5x33x8xf32, #dist.sharding<"[4@mb, 5@tp, 33, 8]">>
// CHECK: nn.attention {{.*}} -> tensor<4x5x33x8xf32, #dist.sharding<"[4@mb, 5@tp, 33, 8]">>
// CHECK: nn.transpose {{.*}} -> tensor<4x33x5x8xf32, #dist.sharding<"[4@mb, 33, 5@tp, 8]">>
// CHECK: nn.reshape {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4@mb, 33, (5@tp, 8)]">>
// CHECK: nn.matmul {{.*}}tp = "the layout's cut of /attn/Softmax"{{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4@mb, 33, 40] partial{tp}">>
// CHECK: nn.add {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4@mb, 33, 40]">>
// CHECK: nn.matmul {{.*}} -> tensor<4x33x72xf32, #dist.sharding<"[4@mb, 33, 72@tp]">>
// CHECK: nn.gelu {{.*}} -> tensor<4x33x72xf32, #dist.sharding<"[4@mb, 33, 72@tp]">>
// CHECK: nn.matmul {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4@mb, 33, 40] partial{tp}">>
// CHECK: nn.matmul {{.*}} -> tensor<4x33x503xf32, #dist.sharding<"[4@mb, 33, 503@tp]">>
// CHECK-NOT: dist.seed
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

// ColoTensor's layout: 120@tp does not nest with (3, rest); the residual stream stays whole, the MLP ends in an all-reduce.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.embedding {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4, 33, 40@tp]">>
// CHECK: nn.layer_norm {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4, 33, 40]">>
// CHECK: nn.matmul {{.*}} -> tensor<4x33x120xf32, #dist.sharding<"[4, 33, 120@tp]">>
// CHECK: nn.slice {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4, 33, 40]">>
// CHECK: nn.attention {{.*}} -> tensor<4x5x33x8xf32, #dist.sharding<"[4, 5, 33, 8]">>
// CHECK: nn.matmul {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4, 33, 40@tp]">>
// CHECK: nn.matmul {{.*}} -> tensor<4x33x72xf32, #dist.sharding<"[4, 33, 72@tp]">>
// CHECK: nn.matmul {{.*}} -> tensor<4x33x40xf32, #dist.sharding<"[4, 33, 40] partial{tp}">>
// CHECK: %[[LOGITS:.*]] = nn.matmul {{.*}} -> tensor<4x33x503xf32, #dist.sharding<"[4, 33, 503] partial{tp}">>
// CHECK: %[[WHOLE:.*]] = dist.reshard %[[LOGITS]]
// CHECK: return %[[WHOLE]]
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

// A user's seed goes before a default one: the weight stays cut by rows though the layout wants columns.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.parameter "w" {{.*}} #dist.sharding<"[6@tp, 8]">
// CHECK: nn.matmul {{.*}} #dist.sharding<"[2, 8] partial{tp}">
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x6xf32>) -> tensor<2x8xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x8xf32>, dist.seed = #dist.seed<"[6@tp, 8]", priority = 0, origin = "sidecar">} : tensor<6x8xf32>
    %y = nn.matmul %x, %w : tensor<2x6xf32>, tensor<6x8xf32> -> tensor<2x8xf32>
    %z = nn.tanh %y {dist.seed = #dist.sharding<"[2, 8@tp]">} : tensor<2x8xf32> -> tensor<2x8xf32>
    return %z : tensor<2x8xf32>
  }
}

// -----

// Weights go before activations: rows of x lose the axis that the weight's columns need.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.tanh {{.*}} #dist.sharding<"[4@tp, 6]">
// CHECK: nn.matmul {{.*}} -> tensor<4x8xf32, #dist.sharding<"[4, 8@tp]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<4x6xf32>) -> tensor<4x8xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x8xf32>, dist.seed = #dist.sharding<"[6, 8@tp]">} : tensor<6x8xf32>
    %a = nn.tanh %x {dist.seed = #dist.sharding<"[4@tp, 6]">} : tensor<4x6xf32> -> tensor<4x6xf32>
    %y = nn.matmul %a, %w : tensor<4x6xf32>, tensor<6x8xf32> -> tensor<4x8xf32>
    return %y : tensor<4x8xf32>
  }
}

// -----

// Parameters take no batch axes, constants and iotas stay whole, a dim of size 1 is never cut.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %arg1: tensor<1x6xf32, #dist.sharding<"[1, 6]">>
// CHECK: nn.parameter "w" {{.*}} #dist.sharding<"[4, 6]">
// CHECK: nn.iota {{.*}} #dist.sharding<"[4, 1]">
// CHECK: nn.add {{.*}} -> tensor<4x6xf32, #dist.sharding<"[4@dp, 6]">>
module attributes {dist.mesh = #dist.mesh<"dp=2:data">} {
  func.func @main(%x: tensor<4x6xf32> {dist.seed = #dist.sharding<"[4@dp, 6]">}, %one: tensor<1x6xf32> {dist.seed = #dist.sharding<"[1@dp, 6]">}) -> tensor<4x6xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<4x6xf32>} : tensor<4x6xf32>
    %i0 = nn.iota {dim = 0 : i64} : tensor<4x1xi64>
    %i = nn.cast %i0 : tensor<4x1xi64> -> tensor<4x1xf32>
    %y = nn.add %x, %w : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
    %z = nn.add %y, %i : tensor<4x6xf32>, tensor<4x1xf32> -> tensor<4x6xf32>
    %r = nn.add %z, %one : tensor<4x6xf32>, tensor<1x6xf32> -> tensor<4x6xf32>
    return %r : tensor<4x6xf32>
  }
}

// -----

// Two users of one batch axis and mb major to dp; values that nobody constrains are replicated.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %arg0: tensor<4x6xf32, #dist.sharding<"[4@(mb, dp), 6]">>, %arg1: tensor<3xf32, #dist.sharding<"[3]">>
// CHECK: nn.exp {{.*}} -> tensor<4x6xf32, #dist.sharding<"[4@(mb, dp), 6]">>
// CHECK: nn.exp {{.*}} -> tensor<3xf32, #dist.sharding<"[3]">>
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data">} {
  func.func @main(%x: tensor<4x6xf32> {dist.seed = #dist.sharding<"[4@(mb, dp), 6]">}, %o: tensor<3xf32>) -> (tensor<4x6xf32>, tensor<3xf32>) {
    %y = nn.exp %x : tensor<4x6xf32> -> tensor<4x6xf32>
    %z = nn.exp %o : tensor<3xf32> -> tensor<3xf32>
    return %y, %z : tensor<4x6xf32>, tensor<3xf32>
  }
}

// -----

// Partial sums: through a product with a full value and Where with a literal 0 they pass; a product of two and a sum with a full value resolve.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %[[Y:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[S:.*]] = nn.mul %[[Y]], {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2, 5] partial{tp}">>
// CHECK: %[[W:.*]] = nn.select {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2, 5] partial{tp}">>
// CHECK: nn.add %[[W]], {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2, 5]">>
// CHECK: %[[U:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: %[[V:.*]] = nn.matmul {{.*}} partial{tp}
// CHECK: nn.mul %[[U]], %[[V]] {{.*}} -> tensor<2x5xf32, #dist.sharding<"[2, 5]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x7xf32>, %m: tensor<2x5xi1>, %z: tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<7x5xf32>, dist.seed = #dist.sharding<"[7@tp, 5]">} : tensor<7x5xf32>
    %k = nn.constant dense<3.0> : tensor<f32> : tensor<f32>
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
    %y = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %s = nn.mul %y, %k : tensor<2x5xf32>, tensor<f32> -> tensor<2x5xf32>
    %c = nn.select %m, %s, %zero : tensor<2x5xi1>, tensor<2x5xf32>, tensor<f32> -> tensor<2x5xf32>
    %a = nn.add %c, %z : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    %u = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %v = nn.matmul %x, %w : tensor<2x7xf32>, tensor<7x5xf32> -> tensor<2x5xf32>
    %p = nn.mul %u, %v : tensor<2x5xf32>, tensor<2x5xf32> -> tensor<2x5xf32>
    return %a, %p : tensor<2x5xf32>, tensor<2x5xf32>
  }
}

// -----

// A sum over the batch is partial over time and data. Terms meet in an add before it is accumulated; a product with a number
// waits until it is, so that it is done once a step; data may stay partial through it.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %[[A:.*]] = nn.reduce sum {{.*}} -> tensor<1x6xf32, #dist.sharding<"[1, 6] partial{dp, mb}">>
// CHECK: %[[B:.*]] = nn.reduce sum {{.*}} -> tensor<1x6xf32, #dist.sharding<"[1, 6] partial{dp, mb}">>
// CHECK: %[[S:.*]] = nn.add %[[A]], %[[B]] {{.*}} -> tensor<1x6xf32, #dist.sharding<"[1, 6] partial{dp, mb}">>
// CHECK: nn.mul %[[S]], {{.*}} -> tensor<1x6xf32, #dist.sharding<"[1, 6] partial{dp}">>
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data">} {
  func.func @main(%x: tensor<8x6xf32> {dist.seed = #dist.sharding<"[8@(mb, dp), 6]">}) -> tensor<1x6xf32> {
    %k = nn.constant dense<0.125> : tensor<f32> : tensor<f32>
    %a = nn.reduce sum %x {axes = array<i64: 0>} : tensor<8x6xf32> -> tensor<1x6xf32>
    %e = nn.exp %x : tensor<8x6xf32> -> tensor<8x6xf32>
    %b = nn.reduce sum %e {axes = array<i64: 0>} : tensor<8x6xf32> -> tensor<1x6xf32>
    %s = nn.add %a, %b : tensor<1x6xf32>, tensor<1x6xf32> -> tensor<1x6xf32>
    %m = nn.mul %s, %k : tensor<1x6xf32>, tensor<f32> -> tensor<1x6xf32>
    return %m : tensor<1x6xf32>
  }
}

// -----

// Storage and use: the weight is stored cut over dp, which no user sees, but what is written to it is computed in its pieces:
// the gradient is wanted cut over dp, the returned value is as it is stored.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: -> (tensor<8x5xf32, #dist.sharding<"[8@(mb, dp), 5@tp]">>, tensor<6x5xf32, #dist.sharding<"[6@dp, 5@tp]">> {nn.writes = "w"})
// CHECK: nn.parameter "w" {{.*}} #dist.sharding<"[6@dp, 5@tp]">
// CHECK: nn.matmul {{.*}}dist.factors = #dist.sharding<"[8@(mb, dp), 6, 5@tp]">
// CHECK: nn.matmul {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6, 5@tp] partial{dp, mb}">>
// CHECK: nn.sub {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6@dp, 5@tp]">>
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data, tp=2:tensor">} {
  func.func @main(%x: tensor<8x6xf32> {dist.seed = #dist.sharding<"[8@(mb, dp), 6]">}) -> (tensor<8x5xf32>, tensor<6x5xf32> {nn.writes = "w"}) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x5xf32>, dist.seed = #dist.sharding<"[6@dp, 5@tp]">} : tensor<6x5xf32>
    %y = nn.matmul %x, %w : tensor<8x6xf32>, tensor<6x5xf32> -> tensor<8x5xf32>
    %t = nn.tanh %y : tensor<8x5xf32> -> tensor<8x5xf32>
    %g = nn.matmul %x, %t {transpose_lhs} : tensor<8x6xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
    %n = nn.sub %w, %g : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    return %t, %n : tensor<8x5xf32>, tensor<6x5xf32>
  }
}

// -----

// The storage's cut over dp comes back along what is written, but not to what only moves and adds up terms of the gradient: these meet whole, so that one collective a step cuts their sum.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.transpose {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6, 5] partial{dp, mb}">>
// CHECK: nn.add {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6, 5] partial{dp, mb}">>
// CHECK: nn.sub {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6@dp, 5]">>
// A term that somebody reads alone is summed for itself, and all are cut.
// CHECK: nn.transpose {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6, 5] partial{dp, mb}">>
// CHECK: nn.exp {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6@dp, 5]">>
// CHECK: nn.add {{.*}} -> tensor<6x5xf32, #dist.sharding<"[6@dp, 5]">>
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=2:data">} {
  func.func @main(%x: tensor<8x6xf32> {dist.seed = #dist.sharding<"[8@(mb, dp), 6]">}, %z: tensor<8x5xf32>) -> (tensor<6x5xf32> {nn.writes = "w"}, tensor<6x5xf32> {nn.writes = "v"}) {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x5xf32>, dist.seed = #dist.sharding<"[6@dp, 5]">} : tensor<6x5xf32>
    %a = nn.matmul %x, %z {transpose_lhs} : tensor<8x6xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
    %b = nn.matmul %z, %x {transpose_lhs} : tensor<8x5xf32>, tensor<8x6xf32> -> tensor<5x6xf32>
    %t = nn.transpose %b {permutation = array<i64: 1, 0>} : tensor<5x6xf32> -> tensor<6x5xf32>
    %g = nn.add %a, %t : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    %n = nn.sub %w, %g : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    %v = nn.parameter "v" {value = dense<1.0> : tensor<6x5xf32>, dist.seed = #dist.sharding<"[6@dp, 5]">} : tensor<6x5xf32>
    %c = nn.matmul %z, %x {transpose_lhs} : tensor<8x5xf32>, tensor<8x6xf32> -> tensor<5x6xf32>
    %u = nn.transpose %c {permutation = array<i64: 1, 0>} : tensor<5x6xf32> -> tensor<6x5xf32>
    %e = nn.exp %u : tensor<6x5xf32> -> tensor<6x5xf32>
    %d = nn.matmul %x, %z {transpose_lhs} : tensor<8x6xf32>, tensor<8x5xf32> -> tensor<6x5xf32>
    %h = nn.add %d, %u : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    %k = nn.add %e, %h : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    %m = nn.sub %v, %k : tensor<6x5xf32>, tensor<6x5xf32> -> tensor<6x5xf32>
    return %n, %m : tensor<6x5xf32>, tensor<6x5xf32>
  }
}

// -----

// Open dims take cuts of others, closed ones do not; the lower priority flows first, whatever the order in the file.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: %arg0: tensor<4x6xf32, #dist.sharding<"[4@x, 6]">>
// CHECK-SAME: %arg1: tensor<4x6xf32, #dist.sharding<"[4, 6]">>
// CHECK: nn.exp {{.*}} -> tensor<4x6xf32, #dist.sharding<"[4@x, 6]">>
// CHECK: nn.tanh {{.*}} -> tensor<4x6xf32, #dist.sharding<"[4, 6@x]">>
module attributes {dist.mesh = #dist.mesh<"x=2:tensor">} {
  func.func @main(%a: tensor<4x6xf32> {dist.seed = #dist.seed<"[4?, 6]">}, %b: tensor<4x6xf32> {dist.seed = #dist.seed<"[4, 6]">}) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
    %e = nn.exp %a {dist.seed = #dist.sharding<"[4@x, 6]">} : tensor<4x6xf32> -> tensor<4x6xf32>
    %t = nn.tanh %b {dist.seed = #dist.sharding<"[4, 6@x]">} : tensor<4x6xf32> -> tensor<4x6xf32>
    return %e, %t : tensor<4x6xf32>, tensor<4x6xf32>
  }
}

// -----

// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.exp {{.*}} -> tensor<4x6xf32, #dist.sharding<"[4, 6@x]">>
module attributes {dist.mesh = #dist.mesh<"x=2:tensor">} {
  func.func @main(%a: tensor<4x6xf32> {dist.seed = #dist.seed<"[4@x, 6?]", priority = 7>}) -> tensor<4x6xf32> {
    %n = nn.neg %a : tensor<4x6xf32> -> tensor<4x6xf32>
    %e = nn.exp %n {dist.seed = #dist.seed<"[4?, 6@x]", priority = -7>} : tensor<4x6xf32> -> tensor<4x6xf32>
    return %e : tensor<4x6xf32>
  }
}

// -----

// A sum may be cast where every number of the one type is one of the other, and not from f16 to bf16 or between integers' quotients.
// CHECK-LABEL: dist.mesh = #mesh
// CHECK: nn.cast {{.*}} -> tensor<2x1xf32, #dist.sharding<"[2, 1] partial{tp}">>
// CHECK: nn.cast {{.*}} -> tensor<2x1xbf16, #dist.sharding<"[2, 1]">>
// CHECK: nn.div {{.*}} -> tensor<2x1xi64, #dist.sharding<"[2, 1]">>
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
  func.func @main(%x: tensor<2x6xf16> {dist.seed = #dist.sharding<"[2, 6@tp]">}, %i: tensor<2x6xi64> {dist.seed = #dist.sharding<"[2, 6@tp]">}) -> (tensor<2x1xf32>, tensor<2x1xbf16>, tensor<2x1xi64>) {
    %two = nn.constant dense<2> : tensor<i64> : tensor<i64>
    %a = nn.reduce sum %x {axes = array<i64: 1>} : tensor<2x6xf16> -> tensor<2x1xf16>
    %wide = nn.cast %a : tensor<2x1xf16> -> tensor<2x1xf32>
    %b = nn.reduce sum %x {axes = array<i64: 1>} : tensor<2x6xf16> -> tensor<2x1xf16>
    %other = nn.cast %b : tensor<2x1xf16> -> tensor<2x1xbf16>
    %c = nn.reduce sum %i {axes = array<i64: 1>} : tensor<2x6xi64> -> tensor<2x1xi64>
    %half = nn.div %c, %two : tensor<2x1xi64>, tensor<i64> -> tensor<2x1xi64>
    return %wide, %other, %half : tensor<2x1xf32>, tensor<2x1xbf16>, tensor<2x1xi64>
  }
}
