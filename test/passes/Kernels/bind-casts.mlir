// RUN: hpc-opt %s --hpc-bind-casts --split-input-file | FileCheck %s

// The weight is read in 16 bits alone: only they are held, in half the memory, and no step rounds it. --verify finds the cast's value by its number.
// CHECK-LABEL: @narrow
// CHECK-NOT: nn.cast
// CHECK: %[[W:.*]] = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1], type = f32> {hpc.id = 7 : i64} : tensor<8x6xbf16>
// CHECK-NOT: nn.parameter
// CHECK: nn.matmul %arg0, %[[W]]
func.func @narrow(%x: tensor<4x8xbf16>) -> tensor<4x6xf32> {
  %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1]> : tensor<8x6xf32>
  %n = nn.cast %w {hpc.id = 7 : i64} : tensor<8x6xf32> -> tensor<8x6xbf16>
  %y = nn.matmul %x, %n : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// A table that is also looked up in keeps its own numbers for that.
// CHECK-LABEL: @both
// CHECK-DAG: %[[W:.*]] = nn.parameter "w" {{.*}} : tensor<8x6xf32>
// CHECK-DAG: %[[N:.*]] = nn.parameter "w" stored <{{.*}}type = f32> : tensor<8x6xf16>
// CHECK: return %[[W]], %[[N]]
func.func @both() -> (tensor<8x6xf32>, tensor<8x6xf16>) {
  %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1]> : tensor<8x6xf32>
  %n = nn.cast %w : tensor<8x6xf32> -> tensor<8x6xf16>
  return %w, %n : tensor<8x6xf32>, tensor<8x6xf16>
}

// -----

// A weight that the program writes is another one in the next step: bound, its copy would stay what it was.
// CHECK-LABEL: @main
// CHECK: nn.cast
func.func @main() -> (tensor<8x6xbf16>, tensor<8x6xf32> {nn.writes = "w"}) {
  %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1]> : tensor<8x6xf32>
  %n = nn.cast %w : tensor<8x6xf32> -> tensor<8x6xbf16>
  %next = nn.mul %w, %w : tensor<8x6xf32>, tensor<8x6xf32> -> tensor<8x6xf32>
  return %n, %next : tensor<8x6xbf16>, tensor<8x6xf32>
}

// -----

// Bytes are read as floats of 16 bits, which hold them: a product of quantised weights converts none of them in a run. f32 would take four times their memory.
// CHECK-LABEL: @bytes
// CHECK-DAG: nn.parameter "a" stored <{{.*}}type = i8> : tensor<8x6xbf16>
// CHECK-DAG: nn.parameter "b" stored <{{.*}}type = ui8> : tensor<6xf16>
// CHECK-DAG: %[[C:.*]] = nn.parameter "c" {{.*}} : tensor<6xi8>
// CHECK-DAG: nn.cast %[[C]] : tensor<6xi8> -> tensor<6xf32>
func.func @bytes() -> (tensor<8x6xbf16>, tensor<6xf16>, tensor<6xf32>) {
  %a = nn.parameter "a" stored <file = "f", bytes = 48, hashes = [1]> : tensor<8x6xi8>
  %b = nn.parameter "b" stored <file = "f", bytes = 6, hashes = [1]> : tensor<6xui8>
  %c = nn.parameter "c" stored <file = "f", bytes = 6, hashes = [1]> : tensor<6xi8>
  %d = nn.cast %a : tensor<8x6xi8> -> tensor<8x6xbf16>
  %e = nn.cast %b : tensor<6xui8> -> tensor<6xf16>
  %f = nn.cast %c : tensor<6xi8> -> tensor<6xf32>
  return %d, %e, %f : tensor<8x6xbf16>, tensor<6xf16>, tensor<6xf32>
}

// -----

// To integers, or from f64, is rounding of another kind: computed.
// CHECK-LABEL: @other
// CHECK-COUNT-2: nn.cast
func.func @other() -> (tensor<8x6xi32>, tensor<6xbf16>) {
  %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1]> : tensor<8x6xf32>
  %d = nn.parameter "d" stored <file = "f", bytes = 48, hashes = [1]> : tensor<6xf64>
  %n = nn.cast %w : tensor<8x6xf32> -> tensor<8x6xi32>
  %m = nn.cast %d : tensor<6xf64> -> tensor<6xbf16>
  return %n, %m : tensor<8x6xi32>, tensor<6xbf16>
}

// -----

// What was widened to be trained, and is not after all (the loss does not depend on it), is read as it is stored.
// CHECK-LABEL: @widened
// CHECK: %[[W:.*]] = nn.parameter "w" stored <file = "f", bytes = 96, hashes = [1]> : tensor<8x6xf16>
// CHECK: return %[[W]]
func.func @widened() -> tensor<8x6xf16> {
  %w = nn.parameter "w" stored <file = "f", bytes = 96, hashes = [1], type = f16> : tensor<8x6xf32>
  %n = nn.cast %w : tensor<8x6xf32> -> tensor<8x6xf16>
  return %n : tensor<8x6xf16>
}
