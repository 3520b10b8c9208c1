// The loop of a training run: step after step, evaluations in between, and those who are told about it. All of it but the step's own
// numbers happens in all processes alike.
#pragma once

#include "runtime/train/LoopSaves.h"
#include "runtime/train/RunObserver.h"

#include <memory>

namespace hpc {

struct LoopOptions {
  int64_t steps = 0;         ///< in all, those before a checkpoint included
  int64_t evaluateEvery = 0; ///< steps; 0: after the last
  int64_t mostSkipped = 100; ///< so many steps in a row may change nothing
  SaveOptions saves;
};

/// Runs steps until `options.steps` are done, or a signal ends the run (LoopSaves.h). `evaluation`: null where there is none. `observers`:
/// none in processes other than that of rank 0 (`isHome`). Errors of an observer, too many skipped steps in a row, and those of a step or a
/// save.
Status trainingLoop(const LoopOptions &options, TrainingRun &run, Session &session, const StepData &data, Evaluation *evaluation,
                    const std::vector<std::unique_ptr<RunObserver>> &observers, bool isHome);

} // namespace hpc
