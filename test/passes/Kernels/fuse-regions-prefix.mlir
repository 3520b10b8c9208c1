// RUN: hpc-opt %s --hpc-fuse-regions | FileCheck %s

// Plans that become entries of one have kernels of different names, by an attribute of the module. If it fails, an entry runs the kernel of another one.
module attributes {hpc.kernel_prefix = "rows4_"} {
// CHECK: nn.fused "rows4_tanh_2x3_0"
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = nn.tanh %x : tensor<2x3xf32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
}
