// A compilation that is only looked at: what its plan would take and cost. Nothing is generated, printed or written.
#pragma once

#include "passes/Options.h"
#include "runtime/plan/PlanFacts.h"

namespace hpc {

struct Trial {
  std::vector<plan::MemoryFacts> memory; ///< by stage
  std::vector<int64_t> kept;             ///< by stage: bytes that forward keeps for backward
  int64_t ranks = 1;
  /// What all ranks together spend on a step, in operations: products, the bubble, and a price for what is sent.
  double cost = 0;

  int64_t peak() const;
};

/// Runs on a copy of `module` the phases that it has not been through, with `options`. --recompute=auto is chosen for
/// `options.memory` as it is in earnest. Errors are those of a compilation; their diagnostics are not printed, so the
/// message may be empty.
Expected<Trial> tryPlan(ModuleOp module, const Options &options);

/// --recompute=auto: how many bytes each stage may keep such that it takes no more than `options.memory`, as place
/// counts them. `staged` has been through phase stage. Where nothing fits, the least of each stage that does not.
Expected<SmallVector<int64_t>> chooseBudgets(ModuleOp staged, const Options &options);

} // namespace hpc
