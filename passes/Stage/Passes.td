// The passes of phase stage, in the order in which they run.
#ifndef HPC_PASSES_STAGE
#define HPC_PASSES_STAGE
include "mlir/Pass/PassBase.td"
#endif
