// The last step of --verify: runs the emitted plan with poisoned memory, keeps what its instructions write, and judges each of
// them by what the interpreter makes of the numbers that it read.
#pragma once

#include "passes/Driver/Difference.h"
#include "passes/Driver/Verify.h"

namespace hpc {

struct RunReport {
  int64_t buffers = 0;      ///< comparisons of a buffer at a rank and micro-batch
  double worstOfBound = 0;  ///< the largest difference as a part of its bound
  std::string overflow;     ///< a line about the first number that its type does not hold, or empty
  std::vector<Tensor> results; ///< of the compiled program, as the plan has them
};

/// An error names the first instruction that differs.
Expected<RunReport> runAndJudge(const Verification &what, const std::vector<Tensor> &inputs);

} // namespace hpc
