// The passes of phase propagate, in the order in which they run.
#ifndef HPC_PASSES_PROPAGATE
#define HPC_PASSES_PROPAGATE
include "mlir/Pass/PassBase.td"
#endif
