// hpc-plan --kernels: the bytes, time and registers of each generated kernel.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc {

/// A table with a line for each kernel of the plan: how often a stage's programs call it, the bytes that it reads and
/// writes, and their time at `bandwidth` GB/s, the least that the kernel can take. With code for a device also its
/// launch, and registers, shared memory and spills as reported by ptxas, if there is a ptxas ($PATH, $CUDA_HOME).
/// Errors: ptxas refuses the code.
Expected<std::string> kernelTable(const plan::Plan &plan, double bandwidth);

} // namespace hpc
