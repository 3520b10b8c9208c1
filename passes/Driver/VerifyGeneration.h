// --verify of a plan for generation: a sequence of steps, each against the forward pass of whole sequences.
#pragma once

#include "passes/Driver/Verify.h"
#include "passes/Schedule/MergedEntries.h"

namespace hpc {

struct GenerationVerification {
  ModuleOp whole; ///< the model as imported, on whole sequences
  /// The steps, by the entries of the merged plan; their `lowered` are of the plans before they were merged.
  Verification prefill, decode;
  const MergedPlan &merged; ///< of prefill, decode and reorder, in this order
  int64_t chunk = 1, maxLength = 1;
};

/// Two chunks of prefill (the second with padding), or as many as pass the end of a cache's ring twice; steps of decoding from within the last chunk over its
/// end, and a change of rows. Caches start as numbers that no model computes. A report, or an error that names the step and what differs first.
Expected<std::string> verifyGeneration(const GenerationVerification &what);

} // namespace hpc
