// The passes of phase kernels, in the order in which they run.
#ifndef HPC_PASSES_KERNELS
#define HPC_PASSES_KERNELS
include "mlir/Pass/PassBase.td"
#endif
