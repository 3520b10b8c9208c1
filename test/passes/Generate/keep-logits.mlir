// RUN: hpc-opt %s --split-input-file --hpc-keep-logits=length=8 | FileCheck %s

// Keys of this step go, the past that only they needed goes with them, and ids stay.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: tensor<2x8xi64> {nn.name = "ids"}) -> (tensor<2x8x20xf32> {nn.name = "logits"})
// CHECK-NOT: nn.concat
module {
  func.func @main(%past: tensor<2x1x0x20xf32> {nn.name = "past"}, %ids: tensor<2x8xi64> {nn.name = "ids"}) -> (tensor<2x1x8x20xf32> {nn.name = "present"}, tensor<2x8x20xf32> {nn.name = "logits"}) {
    %table = nn.parameter "table" stored <file = "w", bytes = 1600, hashes = [1]> : tensor<20x20xf32>
    %e = nn.embedding %table, %ids {vocabulary = 20 : i64} : tensor<20x20xf32>, tensor<2x8xi64> -> tensor<2x8x20xf32>
    %k = nn.reshape %e : tensor<2x8x20xf32> -> tensor<2x1x8x20xf32>
    %present = nn.concat %past, %k {axis = 2 : i64} : tensor<2x1x0x20xf32>, tensor<2x1x8x20xf32> -> tensor<2x1x8x20xf32>
    return %present, %e : tensor<2x1x8x20xf32>, tensor<2x8x20xf32>
  }
}

// -----

// Of two outputs of one row a position, logits are those with a column for each id.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<2x8x20xf32> {nn.name = "scores"})
module {
  func.func @main(%ids: tensor<2x8xi64> {nn.name = "ids"}) -> (tensor<2x8x6xf32> {nn.name = "hidden"}, tensor<2x8x20xf32> {nn.name = "scores"}) {
    %table = nn.parameter "table" stored <file = "w", bytes = 480, hashes = [1]> : tensor<20x6xf32>
    %e = nn.embedding %table, %ids {vocabulary = 20 : i64} : tensor<20x6xf32>, tensor<2x8xi64> -> tensor<2x8x6xf32>
    %y = nn.matmul %e, %table {transpose_rhs} : tensor<2x8x6xf32>, tensor<20x6xf32> -> tensor<2x8x20xf32>
    return %e, %y : tensor<2x8x6xf32>, tensor<2x8x20xf32>
  }
}
