// RUN: hpc-opt %s --hpc-raise-gelu --split-input-file | FileCheck %s

// gpt2's spelling: 0.5 x (1 + tanh(c (x + 0.044715 x^3))).
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.gelu %[[X]] {tanh_approximation}
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %half = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
  %three = nn.constant dense<3.0> : tensor<f32> : tensor<f32>
  %k = nn.constant dense<0.044714998453855515> : tensor<f32> : tensor<f32>
  %c = nn.constant dense<0.7978845834732056> : tensor<f32> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
  %a = nn.mul %x, %half : tensor<2x3xf32>, tensor<f32> -> tensor<2x3xf32>
  %p = nn.pow %x, %three : tensor<2x3xf32>, tensor<f32> -> tensor<2x3xf32>
  %m = nn.mul %p, %k : tensor<2x3xf32>, tensor<f32> -> tensor<2x3xf32>
  %s = nn.add %x, %m : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %u = nn.mul %s, %c : tensor<2x3xf32>, tensor<f32> -> tensor<2x3xf32>
  %t = nn.tanh %u : tensor<2x3xf32> -> tensor<2x3xf32>
  %o = nn.add %t, %one : tensor<2x3xf32>, tensor<f32> -> tensor<2x3xf32>
  %y = nn.mul %a, %o : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// Another association: x x x, the constant distributed over the sum, halves last. x itself is a product, which must not be taken apart.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = nn.mul
// CHECK-NEXT: %[[Y:.*]] = nn.gelu %[[X]] {tanh_approximation}
// CHECK-NEXT: return %[[Y]]
func.func @main(%z: tensor<3xf32>) -> tensor<3xf32> {
  %half = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
  %ck = nn.constant dense<0.0356774081> : tensor<f32> : tensor<f32>
  %c = nn.constant dense<0.7978845834732056> : tensor<f32> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
  %x = nn.mul %z, %half : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %xx = nn.mul %x, %x : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %m = nn.mul %xx, %ck : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %s = nn.add %c, %m : tensor<f32>, tensor<3xf32> -> tensor<3xf32>
  %u = nn.mul %s, %x : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %t = nn.tanh %u : tensor<3xf32> -> tensor<3xf32>
  %o = nn.add %one, %t : tensor<f32>, tensor<3xf32> -> tensor<3xf32>
  %p = nn.mul %o, %x : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %y = nn.mul %half, %p : tensor<f32>, tensor<3xf32> -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

// The exact one, by erf, with x divided by sqrt 2.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<3xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.gelu %[[X]] :
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %root = nn.constant dense<1.41421354> : tensor<f32> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
  %u = nn.div %x, %root : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %t = nn.erf %u : tensor<3xf32> -> tensor<3xf32>
  %o = nn.add %t, %one : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %p = nn.mul %x, %o : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %y = nn.mul %p, %half : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

// Not a GELU: another constant (0.0446), another x outside, and a missing half.
// CHECK-LABEL: func.func @main
// CHECK-NOT: nn.gelu
// CHECK: return
func.func @main(%x: tensor<3xf32>, %z: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %k = nn.constant dense<0.0446> : tensor<f32> : tensor<f32>
  %c = nn.constant dense<0.7978845834732056> : tensor<f32> : tensor<f32>
  %root = nn.constant dense<1.41421354> : tensor<f32> : tensor<f32>
  %half = nn.constant dense<0.5> : tensor<f32> : tensor<f32>
  %one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
  %xx = nn.mul %x, %x : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %xxx = nn.mul %xx, %x : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %kx = nn.mul %xxx, %k : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %s = nn.add %x, %kx : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %cs = nn.mul %s, %c : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %tanh = nn.tanh %cs : tensor<3xf32> -> tensor<3xf32>
  %a = nn.add %tanh, %one : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %b = nn.mul %a, %x : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %wrong_constant = nn.mul %b, %half : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %u = nn.div %x, %root : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %t = nn.erf %u : tensor<3xf32> -> tensor<3xf32>
  %o = nn.add %t, %one : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %p = nn.mul %z, %o : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %wrong_x = nn.mul %p, %half : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  %no_half = nn.mul %x, %o : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  return %wrong_constant, %wrong_x, %no_half : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}
