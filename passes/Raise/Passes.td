// The passes of phase raise, in the order in which they run.
#ifndef HPC_PASSES_RAISE
#define HPC_PASSES_RAISE
include "mlir/Pass/PassBase.td"
#endif
