// RUN: not hpc-opt %s --hpc-quantize-weights=weights=int4 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not hpc-opt %s --weights=int4 -o %t.plan 2>&1 | FileCheck %s --check-prefix=FLAG
// RUN: not hpc-opt %s --weights=int8 --train --loss=mse -o %t.plan 2>&1 | FileCheck %s --check-prefix=TRAIN
// RUN: not hpc-opt %s --weights=int8 --deterministic -o %t.plan 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not hpc-opt %s --hpc-quantize-weights=weights=int8 2>&1 | FileCheck %s --check-prefix=WRITES

// A word that there is not: taken for another one, a plan would have other numbers.
// WORD: [usage]{{.*}} weights 'int4' are unknown; use int8, or float for the types that the model has
// FLAG: error[usage]: --weights=int4 is unknown; use float or int8 (--weights of hpc-run is another flag)

// A step that trains would round its weights back to where they were.
// TRAIN: error[usage]: --weights=int8 is for inference:
// WRITES: [unsupported]{{.*}} --weights=int8 is for inference:

// BITS: error[usage]: --deterministic makes sums of f32 exact, and --weights=int8 has other products
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x6xf32>, tensor<8x6xf32> {nn.writes = "w"}) {
  %w = nn.parameter "w" stored <file = "f", bytes = 192, hashes = [1]> : tensor<8x6xf32>
  %y = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %next = nn.add %w, %w : tensor<8x6xf32>, tensor<8x6xf32> -> tensor<8x6xf32>
  return %y, %next : tensor<4x6xf32>, tensor<8x6xf32>
}
