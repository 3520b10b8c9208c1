// RUN: hpc-opt %s -split-input-file -verify-diagnostics --hpc-decompose-composites --hpc-fuse-regions --hpc-write-in-place --hpc-emit-kernels --hpc-verify-kernels

// Who reads the old value after the write would see the new one.
func.func @main(%rows: tensor<2x1xf32>, %k: tensor<2x8xf32> {nn.state = "k", nn.initial = 0.0 : f64}, %at: tensor<i64> {nn.step_scalar = "position", nn.largest = 7 : i64})
    -> (tensor<2x8xf32> {nn.writes = "k"}, tensor<2x8xf32>) {
  // expected-error @+1 {{nn.update_slice of '' does not write its state where it is: the function has to return the result with nn.writes, and nothing may read the state after it}}
  %n = nn.update_slice %k, %rows, %at {dim = 1 : i64} : tensor<2x8xf32>, tensor<2x1xf32>, tensor<i64> -> tensor<2x8xf32>
  %old = nn.add %k, %n : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
  return %n, %old : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// In the last step the row would be behind the state.
func.func @main(%rows: tensor<2x1xf32>, %k: tensor<2x8xf32> {nn.state = "k", nn.initial = 0.0 : f64}, %at: tensor<i64> {nn.step_scalar = "position", nn.largest = 7 : i64})
    -> (tensor<2x8xf32> {nn.writes = "k"}) {
  %one = nn.constant dense<1> : tensor<i64> : tensor<i64>
  %next = nn.add %at, %one : tensor<i64>, tensor<i64> -> tensor<i64>
  // expected-error @+1 {{writes from a position on that has to be in 0 to 7 in each step, and is in 1 to 8; make it of step scalars with nn.largest}}
  %n = nn.update_slice %k, %rows, %next {dim = 1 : i64} : tensor<2x8xf32>, tensor<2x1xf32>, tensor<i64> -> tensor<2x8xf32>
  return %n : tensor<2x8xf32>
}

// -----

// A number without a range may be anywhere.
func.func @main(%rows: tensor<2x1xf32>, %k: tensor<2x8xf32> {nn.state = "k", nn.initial = 0.0 : f64}, %at: tensor<i64> {nn.name = "position"})
    -> (tensor<2x8xf32> {nn.writes = "k"}) {
  // expected-error @+1 {{has to be in 0 to 7 in each step, and may be any number; make it of step scalars with nn.largest}}
  %n = nn.update_slice %k, %rows, %at {dim = 1 : i64} : tensor<2x8xf32>, tensor<2x1xf32>, tensor<i64> -> tensor<2x8xf32>
  return %n : tensor<2x8xf32>
}

// -----

// A ring takes any position, but none below 0.
func.func @main(%rows: tensor<2x1xf32>, %k: tensor<2x8xf32> {nn.state = "k", nn.initial = 0.0 : f64}, %at: tensor<i64> {nn.step_scalar = "position", nn.largest = 97 : i64})
    -> (tensor<2x8xf32> {nn.writes = "k"}) {
  %one = nn.constant dense<-1> : tensor<i64> : tensor<i64>
  %before = nn.add %at, %one : tensor<i64>, tensor<i64> -> tensor<i64>
  // expected-error @+1 {{writes from a position on that has to be 0 or more in each step, and is in -1 to 96; make it of step scalars with nn.largest}}
  %n = nn.update_slice %k, %rows, %before {dim = 1 : i64, wraps} : tensor<2x8xf32>, tensor<2x1xf32>, tensor<i64> -> tensor<2x8xf32>
  return %n : tensor<2x8xf32>
}
