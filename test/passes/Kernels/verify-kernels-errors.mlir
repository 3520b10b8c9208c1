// RUN: hpc-opt %s --hpc-verify-kernels -split-input-file -verify-diagnostics

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{nn.exp of '' is neither a library call nor in a fused region; run hpc-fuse-regions}}
  %0 = nn.exp %x : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{region 'f_0' has no code; run hpc-emit-kernels}}
  %0 = nn.fused "f_0" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = nn.exp %a : tensor<4xf32> -> tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// Only a matmul can leave a tail out.
module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
func.func @main(%x: tensor<3xf32, #dist.sharding<"[5@tp]">>) -> tensor<3xf32, #dist.sharding<"[5@tp]">> {
  // expected-error @+1 {{dist.fill_tail of '' is read by func.return, only a matmul can leave out a tail; run hpc-fuse-regions}}
  %0 = dist.fill_tail %x {dims = array<i64: 0>, value = 0.0 : f32} : tensor<3xf32, #dist.sharding<"[5@tp]">> -> tensor<3xf32, #dist.sharding<"[5@tp]">>
  return %0 : tensor<3xf32, #dist.sharding<"[5@tp]">>
}
}

// -----

// Element 0 would be gone before the last row reads it.
module attributes {hpc.code = dense<0> : tensor<1xi8>} {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{region 'f_0' writes result 0 over operand 0, but reads that at other elements too; take it out of in_place}}
  %0 = nn.fused "f_0" (%x) {in_place = array<i64: 0>, rows = 1 : i64, scalars = []} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = nn.slice %a {starts = array<i64: 3>, steps = array<i64: -1>} : tensor<4xf32> -> tensor<4xf32>
    %2 = nn.add %a, %1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    nn.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
}

// -----

// A claimed composite has code inside a region only.
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{nn.softmax of '' is neither a library call nor in a fused region; run hpc-fuse-regions}}
  %0 = nn.softmax %x : tensor<2x4xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// A region is code for one target.
module attributes {hpc.target = "unheard-of"} {
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.fused "f_0" (%x) {rows = 2 : i64, scalars = []} : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>):
    // expected-error @+1 {{nn.softmax in region 'f_0' has no provider on target 'unheard-of'; run hpc-decompose-composites}}
    %1 = nn.softmax %a : tensor<2x4xf32> -> tensor<2x4xf32>
    nn.yield %1 : tensor<2x4xf32>
  }
  return %0 : tensor<2x4xf32>
}
}
