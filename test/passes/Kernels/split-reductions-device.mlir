// RUN: sed s/TARGET/ptx/ %s | hpc-opt --hpc-split-reductions | FileCheck %s --check-prefix=DEVICE
// RUN: sed s/TARGET/x86-64,ptx/ %s | hpc-opt --hpc-split-reductions | FileCheck %s --check-prefix=BOTH

// A device alone has blocks of 16 rows, 512 at most, since one of them is a block of threads; with a host beside it those of the host.
// DEVICE: nn.reduce sum %{{.*}} : tensor<64x16x64xf32> -> tensor<64x1x64xf32>
// DEVICE: nn.reduce sum %{{.*}} : tensor<512x32x64xf32> -> tensor<512x1x64xf32>
// BOTH: nn.reduce sum %{{.*}} : tensor<32x32x64xf32> -> tensor<32x1x64xf32>
// BOTH: nn.reduce sum %{{.*}} : tensor<64x256x64xf32> -> tensor<64x1x64xf32>
module attributes {hpc.target = "TARGET"} {
func.func @blocks(%a: tensor<1024x64xf32>, %b: tensor<16384x64xf32>) -> (tensor<1x64xf32>, tensor<1x64xf32>) {
  %0 = nn.reduce sum %a {axes = array<i64: 0>} : tensor<1024x64xf32> -> tensor<1x64xf32>
  %1 = nn.reduce sum %b {axes = array<i64: 0>} : tensor<16384x64xf32> -> tensor<1x64xf32>
  return %0, %1 : tensor<1x64xf32>, tensor<1x64xf32>
}
}
