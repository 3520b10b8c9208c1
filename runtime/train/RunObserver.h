// Those who want to know about a training run: printed lines, files of metrics, curves. The loop tells them what happens; they exist
// in the process of rank 0 alone, which has the numbers of a step.
#pragma once

#include "runtime/train/Checkpoints.h"
#include "runtime/train/Evaluation.h"
#include "runtime/train/TrainingRun.h"

namespace hpc {

class RunObserver {
public:
  virtual ~RunObserver() = default;

  // Each may fail: the run then ends in all processes with that error.

  /// Before the first step of this process; `state.steps` have been done before.
  virtual Status started(const RunState &state) { return Status::success(); }
  /// After a step; `state` is that of the next one.
  virtual Status stepped(const StepReport &report, const RunState &state) { return Status::success(); }
  /// After an evaluation; `step` is the last one before it, -1 where there was none.
  virtual Status evaluated(const EvaluationReport &report, int64_t step) { return Status::success(); }
  /// A checkpoint is whole.
  virtual Status saved(const SaveReport &report) { return Status::success(); }
  /// After the last step of a run that went well.
  virtual Status ended(const RunState &state) { return Status::success(); }
};

} // namespace hpc
