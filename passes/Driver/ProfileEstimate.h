// Time and memory of a plan of a large model, by the profile of its blocks: for the proposals of --memory, which are many and need no more.
#pragma once

#include "passes/Driver/BlockProfile.h"

namespace hpc {

struct ProfileEstimate {
  std::vector<int64_t> memory; ///< bytes of a rank, by stage
  double seconds = 0;          ///< of a step
  int64_t lasting = 0;         ///< bytes of the fullest rank that live longer than a micro-batch
  int64_t peak() const { return *std::max_element(memory.begin(), memory.end()); }
};

/// The plan that `options` leads to; --recompute=auto computes again what `options.memory` has no room for. Blocks are cut into stages as phase stage does.
/// Errors: as BlockProfiler::profile; usage, where blocks of the pipeline are not those of the profile, or the schedule is a user's file.
Expected<ProfileEstimate> estimateByProfile(BlockProfiler &profiler, const Options &options);

/// By part of the pipeline: the copies of what a micro-batch keeps, by the schedule that the compiler takes for `options`. Errors: usage, as estimateByProfile.
Expected<std::vector<int64_t>> keptCopiesOf(const Options &options);

} // namespace hpc
