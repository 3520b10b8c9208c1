// The passes of phase generate: a graph of whole sequences becomes one step of generation, still serial.
#ifndef HPC_PASSES_GENERATE
#define HPC_PASSES_GENERATE
include "mlir/Pass/PassBase.td"

def VerifyGenerated : Pass<"hpc-verify-generated", "::mlir::ModuleOp"> {
  let summary = "check: states and written values of @main fit, and nothing of dist is left";
}
#endif
