// The loop that generates: prompts of like length in one batch, prefill in chunks up to the shortest one, then steps that feed longer
// prompts their own ids while shorter ones generate. So all rows stand at one position, and each gets what it would get alone.
#pragma once

#include "runtime/generate/Continuation.h"
#include "runtime/generate/Decoder.h"

#include <functional>
#include <memory>

namespace hpc::generate {

struct Task {
  std::vector<int64_t> prompt; ///< at least one id, and no more than the decoder's positions
  std::unique_ptr<Continuation> continuation; ///< of no more rows than the decoder has
};

struct LoopHooks {
  /// A task with one row has a new id.
  std::function<void(size_t task, int64_t id)> onId = [](size_t, int64_t) {};
  /// A task that had at least one new id is done.
  std::function<void(size_t task)> onDone = [](size_t) {};
  /// Asked before each step: whether to end all with what there is.
  std::function<bool()> isInterrupted = [] { return false; };
};

/// Ids that went through the decoder, rows without a task left out, and the time that they took.
struct LoopTimes {
  int64_t prefilled = 0, decoded = 0;
  double prefillSeconds = 0, decodeSeconds = 0; ///< the choice of ids included
};

/// The numbers of the tasks of each batch, shortest prompts first, tasks of equal length in their order.
std::vector<std::vector<size_t>> batchesOf(const std::vector<Task> &tasks, int64_t rows);

/// A continuation that is not done when the positions are used up ends with FinishReason::Length. After isInterrupted, tasks without
/// a new id stay undone.
Expected<LoopTimes> runLoop(Decoder &decoder, std::vector<Task> &tasks, const LoopHooks &hooks = {});

} // namespace hpc::generate
