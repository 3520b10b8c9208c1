// RUN: hpc-opt %s --hpc-split-stages="stages=2 split=1,3" -verify-diagnostics

// expected-error @below {{[usage] --pp-split=1,3 names 2 parts with 4 blocks, but pp=2 has 2 parts and the graph has 3 blocks; give 2 numbers that sum to 3, such as 2,1}}
func.func @main(%ids: tensor<2xi64>) -> tensor<2x7xf32> {
  %wte = nn.parameter "wte" stored <file = "w", bytes = 112, hashes = [1]> : tensor<7x4xf32>
  %up0 = nn.parameter "up0" stored <file = "w", bytes = 128, hashes = [1]> : tensor<4x8xf32>
  %down0 = nn.parameter "down0" stored <file = "w", bytes = 128, hashes = [1]> : tensor<8x4xf32>
  %up1 = nn.parameter "up1" stored <file = "w", bytes = 128, hashes = [1]> : tensor<4x8xf32>
  %down1 = nn.parameter "down1" stored <file = "w", bytes = 128, hashes = [1]> : tensor<8x4xf32>
  %up2 = nn.parameter "up2" stored <file = "w", bytes = 128, hashes = [1]> : tensor<4x8xf32>
  %down2 = nn.parameter "down2" stored <file = "w", bytes = 128, hashes = [1]> : tensor<8x4xf32>
  %w = nn.parameter "w" stored <file = "w", bytes = 16, hashes = [1]> : tensor<4xf32>
  %e = nn.embedding %wte, %ids {vocabulary = 7 : i64} : tensor<7x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
  %m0 = nn.matmul %e, %up0 : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  %g0 = nn.gelu %m0 : tensor<2x8xf32> -> tensor<2x8xf32>
  %d0 = nn.matmul %g0, %down0 : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  %x0 = nn.add %d0, %e : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %m1 = nn.matmul %x0, %up1 : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  %g1 = nn.gelu %m1 : tensor<2x8xf32> -> tensor<2x8xf32>
  %d1 = nn.matmul %g1, %down1 : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  %x1 = nn.add %d1, %x0 : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %m2 = nn.matmul %x1, %up2 : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  %g2 = nn.gelu %m2 : tensor<2x8xf32> -> tensor<2x8xf32>
  %d2 = nn.matmul %g2, %down2 : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  %x2 = nn.add %d2, %x1 : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %n = nn.rms_norm %x2 weight %w : tensor<4xf32> {epsilon = 1.0e-5 : f64} : tensor<2x4xf32> -> tensor<2x4xf32>
  %y = nn.matmul %n, %wte {transpose_rhs} : tensor<2x4xf32>, tensor<7x4xf32> -> tensor<2x7xf32>
  return %y : tensor<2x7xf32>
}
