// The passes of phase annotate, in the order in which they run.
#ifndef HPC_PASSES_ANNOTATE
#define HPC_PASSES_ANNOTATE
include "mlir/Pass/PassBase.td"
#endif
