// Fills what a rank's session arena starts with, on all threads of the rank where memory is the host's: reading, checking and
// the first touch of pages are most of what it takes to start.
#pragma once

#include "runtime/core/Arena.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/core/Weights.h"

namespace hpc {

/// `start`, from 0 to 1, is where in all there is to do the threads begin: ranks that begin elsewhere find checked what
/// another one reads too. The error is that of the first part that fails, in the order of the stage.
Status loadBindings(const Weights &weights, const plan::Stage &stage, Place place, Device &device, const Arena &arena,
                    ThreadPool &threads, double start);

} // namespace hpc
