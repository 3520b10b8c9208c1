// A whole GPT-2 block with 5 heads, embedding and tied head.
module {
  func.func @main(%ids: tensor<4x33xi64> {test.limit = 503 : i64, dist.seed = #dist.sharding<"[4@(mb, dp), 33]">}) -> tensor<4x33x503xf32> {
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
