// The last step of --verify: runs the emitted plan with poisoned memory, keeps what its instructions write, and judges each of
// them by what the interpreter makes of the numbers that it read.
#pragma once

#include "passes/Driver/Difference.h"
#include "passes/Driver/Verify.h"

namespace hpc {

/// A number that is infinite in its type.
struct Overflow {
  std::string node;
  DType dtype;
  double value;
};

struct RunReport {
  int64_t buffers = 0;      ///< comparisons of a buffer at a rank and micro-batch
  double worstOfBound = 0;  ///< the largest difference as a part of its bound
  std::optional<Overflow> overflow; ///< the first one
  std::vector<Tensor> results; ///< of the compiled program, as the plan has them
};

/// An error names the first instruction that differs.
Expected<RunReport> runAndJudge(const Verification &what, const std::vector<Tensor> &inputs);

} // namespace hpc
