// RUN: printf 'F1 F0 # backwards\nF1 F0\n' > %t.good.txt && hpc-opt %s --hpc-make-schedule="schedule=%t.good.txt" | FileCheck %s
// RUN: printf 'F0 F1\nF1 F0\n' > %t.order.txt && hpc-opt %s --hpc-make-schedule="schedule=%t.order.txt" | FileCheck %s --check-prefix=ORDER
// RUN: printf 'F0 F1 DF0 DF1\nRF1 RF0 F1 F0\n' > %t.pairs.txt && not hpc-opt %s --hpc-make-schedule="schedule=%t.pairs.txt" 2>&1 | FileCheck %s --check-prefix=PAIRS
// RUN: printf 'F0 F1\n' > %t.short.txt && not hpc-opt %s --hpc-make-schedule="schedule=%t.short.txt" 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: printf 'F0 F1\nG0\n' > %t.text.txt && not hpc-opt %s --hpc-make-schedule="schedule=%t.text.txt" 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not hpc-opt %s --hpc-make-schedule="schedule=./no-such-file" 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not hpc-opt %s --hpc-make-schedule="schedule=1f1b" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not hpc-opt %s --hpc-make-schedule="schedule=fastest" 2>&1 | FileCheck %s --check-prefix=NAME

// A user's file is taken as it is, receives and drains are added.
// CHECK: pipe.schedule = ["F1 F0 DF1 DF0", "RF1 RF0 F1 F0"]
// Receives follow the sender's order, not that in which they are needed.
// ORDER: pipe.schedule = ["F0 F1 DF0 DF1", "RF0 RF1 F1 F0"]
// Whatever a file says is judged by the checker.
// PAIRS: [usage] --pp-schedule={{.*}}.pairs.txt: stage 0: F0 sends to stage 1 what stage 1 receives by RF0, but that one posts RF1 first; both must take the messages between them in one order
// SHORT: [usage] --pp-schedule={{.*}}.short.txt: the schedule has lists for 1 stage, the pipeline has 2; the file has a line for each stage, which names what the stage runs, in order: each program once for each micro-batch (F0 B0 F1 B1), U once, and receives and drains all or not at all; hpc-opt --explain shows the lists of a schedule that runs
// TEXT: [usage] --pp-schedule={{.*}}.text.txt: line 2: schedule: 'G0' is no action
// FILE: [io] --pp-schedule=./no-such-file: {{.*}}no-such-file
// KIND: [usage] --pp-schedule=1f1b: it is the schedule of a training step, and this program runs forward alone; add --train, or leave the schedule out
// NAME: [usage] --pp-schedule=fastest: schedule 'fastest' is not known; there are inference, gpipe, 1f1b, interleaved, zb-h1, and files (./my-schedule.txt)
module attributes {dist.mesh = #dist.mesh<"mb=2:time, dp=1:data, tp=1:tensor">} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %f = pipe.stage 0 forward(%x) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      pipe.yield %a : tensor<2xf32>
    }
    %t = pipe.transfer %f {from = 0 : i64, to = 1 : i64} : tensor<2xf32> -> tensor<2xf32>
    %g = pipe.stage 1 forward(%t) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      pipe.yield %a : tensor<2xf32>
    }
    return %g : tensor<2xf32>
  }
}
