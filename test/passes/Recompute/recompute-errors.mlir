// RUN: hpc-opt %s -split-input-file --hpc-recompute=policy=most -verify-diagnostics

// A policy that is misspelt would else keep everything in silence.
module {
  // expected-error @below {{[usage] --recompute=most is unknown; use none, attention, full or auto}}
  func.func @main() attributes {pipe.schedule = ["F0"]} {
    return
  }
}
