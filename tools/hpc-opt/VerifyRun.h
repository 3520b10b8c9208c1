// The last step of --verify: runs the emitted plan with poisoned memory and compares its buffers with the serial
// values.
#pragma once

#include "tools/hpc-opt/ErrorBound.h"
#include "tools/hpc-opt/Verify.h"

namespace hpc {

struct RunReport {
  int64_t buffers = 0;     ///< comparisons of a buffer at a rank and micro-batch
  double worstOfBound = 0; ///< the largest difference as a part of its bound
  double worstOutput = 0;  ///< relative to the largest magnitude of the output
};

Expected<RunReport> runAndCompare(const Verification &what, const std::vector<Tensor> &inputs,
                                  const Reference &reference);

} // namespace hpc
