// The passes of phase train, in the order in which they run: @main becomes one whole training step, still serial.
#ifndef HPC_PASSES_TRAIN
#define HPC_PASSES_TRAIN
include "mlir/Pass/PassBase.td"

def VerifyTrain : Pass<"hpc-verify-train", "::mlir::ModuleOp"> {
  let summary = "check: states, written values, step scalars and gradients of @main fit its parameters";
}
#endif
