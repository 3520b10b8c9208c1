// RUN: hpc-opt %s --hpc-verify-staged --split-input-file -verify-diagnostics

// An op outside of every stage would run nowhere.
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{'nn.exp' stands outside of every stage}}
  %y = nn.exp %x : tensor<2x4xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// A stage without a program would be ranks without work.
// expected-error @below {{the stages of @main are not 0, 1, ...: there are 1 up to 1}}
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = pipe.stage 1 forward(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>):
    pipe.yield %a : tensor<2x4xf32>
  }
  return %y : tensor<2x4xf32>
}

// -----

// Two programs under one key: the schedule could not say which to run.
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-note @below {{here too}}
  %y = pipe.stage 0 forward(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>):
    pipe.yield %a : tensor<2x4xf32>
  }
  // expected-error @below {{program forward of stage 0 is there twice}}
  %z = pipe.stage 0 forward(%y) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>):
    pipe.yield %a : tensor<2x4xf32>
  }
  return %z : tensor<2x4xf32>
}

// -----

// A transfer of something that is no stage's result.
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @below {{transfer from stage 0 to 1 must carry a result of stage 0}}
  %t = pipe.transfer %x {from = 0 : i64, to = 1 : i64} : tensor<2x4xf32> -> tensor<2x4xf32>
  return %t : tensor<2x4xf32>
}

// -----

// Without a schedule lower would have nothing to bind.
// expected-error @below {{@main has stages but no attribute pipe.schedule, an array of one text a stage; run hpc-make-schedule}}
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = pipe.stage 0 forward(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>):
    pipe.yield %a : tensor<2x4xf32>
  }
  return %y : tensor<2x4xf32>
}

// -----

// A schedule that was edited by hand and leaves out what it must run.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=1:tensor">} {
  // expected-error @below {{stage 0: F1 is missing}}
  func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {pipe.schedule = ["F0"]} {
    %y = pipe.stage 0 forward(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
    ^bb0(%a: tensor<2x4xf32>):
      pipe.yield %a : tensor<2x4xf32>
    }
    return %y : tensor<2x4xf32>
  }
}

// -----

// A schedule that cannot be read.
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=1:tensor">} {
  // expected-error @below {{pipe.schedule, stage 0: schedule: 'G1' is no action}}
  func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {pipe.schedule = ["F0 G1"]} {
    %y = pipe.stage 0 forward(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
    ^bb0(%a: tensor<2x4xf32>):
      pipe.yield %a : tensor<2x4xf32>
    }
    return %y : tensor<2x4xf32>
  }
}
