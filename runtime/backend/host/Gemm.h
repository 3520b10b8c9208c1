// Matrix products on the host, by oneDNN. One thread a call: the ranks are the threads.
#pragma once

#include "runtime/core/Backend.h"

namespace hpc::host {

/// Called once on each thread that will call gemm: Debian's oneDNN would otherwise start a pool of its own for each.
void useOneThread();

/// Every product of the batch. Zero extents are legal: nothing is called, and k = 0 writes zeros.
Status gemm(const GemmCall &call);

/// An upper bound of what one call allocates while it runs.
int64_t gemmScratchBytes(int64_t m, int64_t n, int64_t k);

} // namespace hpc::host
