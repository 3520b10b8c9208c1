// The passes of phase partition, in the order in which they run.
#ifndef HPC_PASSES_PARTITION
#define HPC_PASSES_PARTITION
include "mlir/Pass/PassBase.td"
#endif
