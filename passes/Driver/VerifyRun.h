// The last step of --verify: runs the emitted plan with poisoned memory and compares its buffers with the serial
// values.
#pragma once

#include "passes/Driver/Difference.h"
#include "passes/Driver/Verify.h"

namespace hpc {

/// What --verify compares with: the serial values in double, by hpc.id. Parameters are not kept but read again: they are
/// most of a model.
struct Reference {
  std::map<int64_t, std::shared_ptr<const Tensor>> values;
  std::map<int64_t, nn::ParameterOp> parameters; ///< of the serial program
  std::map<int64_t, double> bounds;              ///< of values, by hpc.id (RunningError::bound)
  std::map<int64_t, double> boundsInDouble;      ///< of the same values, for two runs in double
  std::vector<Tensor> outputs;
  std::vector<double> outputBounds; ///< for the plan, whatever raise changed in the program included
};

struct RunReport {
  int64_t buffers = 0;           ///< comparisons of a buffer at a rank and micro-batch
  int64_t unbounded = 0;         ///< of those, without a bound: f32 overflows there
  double worstOfBound = 0;       ///< the largest difference as a part of its bound
  double worstResultOfBound = 0; ///< the same of what the run returns and writes
  double worstOutput = 0;        ///< relative to the largest magnitude of the output, where the bound is less than that
  int64_t outputsOfRounding = 0; ///< that differ, and whose bound is not: their terms cancel, or errors grow
};

Expected<RunReport> runAndCompare(const Verification &what, const std::vector<Tensor> &inputs,
                                  const Reference &reference);

} // namespace hpc
