// RUN: hpc-opt %s -o %t.plan && hpc-plan %t.plan | FileCheck %s --check-prefix=PLAN
// RUN: /usr/bin/python3 -c "import numpy as np; np.savez(r'%t.npz', x=np.arange(6, dtype=np.float32).reshape(2, 3) / 8)"
// RUN: hpc-run %t.plan --poison --input=%t.npz --output=%t.out.npz
// RUN: /usr/bin/python3 -c "import numpy as np; x = np.load(r'%t.npz')['x']; o = np.load(r'%t.out.npz'); t = np.tanh(x); print([np.allclose(o[n], v, rtol=1e-6) and o[n].shape == v.shape for n, v in dict(y=t, z=t, s=t.sum(), same=x).items()])" | FileCheck %s

// One value as two outputs, an input as an output, a sum without dims: all legal ONNX. Each output has a name and a store of its own; if two of one
// value became one, or a value without dims had no element, an array would be missing or wrong.
// CHECK: [True, True, True, True]
// PLAN: output y: f32[2, 3]
// PLAN: output z: f32[2, 3]
// PLAN: output s: f32[]
// PLAN: store output y = b[[T:[0-9]+]]
// PLAN: store output z = b[[T]]
module attributes {dist.mesh = #dist.mesh<"tp=1:tensor">, hpc.phase = "stage"} {
  func.func @main(%x: tensor<2x3xf32> {nn.name = "x"})
      -> (tensor<2x3xf32> {nn.name = "y"}, tensor<2x3xf32> {nn.name = "z"}, tensor<f32> {nn.name = "s"}, tensor<2x3xf32> {nn.name = "same"}) {
    %0 = nn.tanh %x : tensor<2x3xf32> -> tensor<2x3xf32> loc("t")
    %1 = nn.reduce sum %0 {axes = array<i64: 0, 1>} : tensor<2x3xf32> -> tensor<1x1xf32>
    %2 = nn.reshape %1 : tensor<1x1xf32> -> tensor<f32>
    return %0, %0, %2, %x : tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<2x3xf32>
  }
}
