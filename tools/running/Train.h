// Training, from the data to the last checkpoint.
#pragma once

#include "runtime/train/Evaluation.h"
#include "runtime/train/TrainingRun.h"
#include "tools/running/TrainFlags.h"

#include <functional>

namespace hpc {

/// The data of a run, and the plans of the entries that take it.
struct TrainData {
  std::unique_ptr<StepData> batches; ///< --data, of the session's entry 0
  std::unique_ptr<StepData> heldOut; ///< --evaluate, of `evaluation`
  size_t evaluation = 0;             ///< entry
};

/// Opens the files of the flags. `entries`: plan::planOf each entry of `plan`, none where it has none; both outlive the data. `notes` receives
/// facts that the user should know.
Status openTrainData(const TrainFlags &flags, const plan::Plan &plan, const std::vector<plan::Plan> &entries, TrainData &data,
                     std::vector<std::string> &notes);

/// More for a tool to do in the process that prints and writes; a failure is one of all processes.
struct TrainHooks {
  std::function<Status()> begins = [] { return Status::success(); }; ///< nothing stands in the way of the first step
  std::function<Status()> ends = [] { return Status::success(); };   ///< all steps are done, and the last checkpoint is written
};

/// `isHome`: this process is the one that prints and writes.
Status trainPlan(const TrainFlags &flags, Session &session, const TrainData &data, bool isHome, const TrainHooks &hooks = {});

} // namespace hpc
