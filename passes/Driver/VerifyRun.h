// The last step of --verify: runs the emitted plan with poisoned memory, keeps what its instructions write, and judges each of
// them by what the interpreter makes of the numbers that it read.
#pragma once

#include "passes/Driver/Difference.h"
#include "passes/Driver/Verify.h"
#include "runtime/core/Session.h"

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

/// A session of poisoned memory that runs entry after entry.
struct VerifySession {
  static Expected<std::unique_ptr<VerifySession>> create(const plan::Plan &plan, const std::string &planFolder);
  /// The tensor that is saved under a name, as it is now; an error where there is none.
  Expected<Tensor> state(const std::string &name);

  std::unique_ptr<Session> session;
  size_t entry = 0;  ///< to run
  Observer observer; ///< of its run
};

/// One run of the session's entry, whose plan is `what.lowered`'s. An error names the first instruction that differs.
/// `keepsStates`: states are what the session has, not those of the inputs.
Expected<RunReport> runAndJudge(const Verification &what, std::vector<Tensor> inputs, VerifySession &session, bool keepsStates = false);

} // namespace hpc
