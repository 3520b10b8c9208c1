// hpc-plan --kernels: what each generated kernel takes of a machine.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc {

/// A table with a line for each kernel of the plan: how often a stage's programs call it, the bytes that it reads and
/// writes, and the time that they take at `bandwidth` GB/s, which no kernel can be faster than. With code for a device
/// also its launch, and registers, shared memory and spills as ptxas says, where there is a ptxas ($PATH, $CUDA_HOME).
/// Errors: ptxas refuses the code.
Expected<std::string> kernelTable(const plan::Plan &plan, double bandwidth);

} // namespace hpc
