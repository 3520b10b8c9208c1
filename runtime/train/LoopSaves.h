// The checkpoints of a loop: after every so many steps, after the last one, and when a signal asks for one.
#pragma once

#include "runtime/train/Checkpoints.h"
#include "runtime/train/StepData.h"
#include "runtime/train/StopSignals.h"

namespace hpc {

struct SaveOptions {
  CheckpointOptions checkpoints; ///< without a folder nothing is saved, and signals have their usual actions
  int64_t every = 0;             ///< steps; 0: after the last
  std::map<std::string, std::string> metadata; ///< of the run, for state.json
};

class LoopSaves {
public:
  /// `told` is called in all processes with each checkpoint that is whole. All arguments but the options outlive the object.
  static Expected<std::unique_ptr<LoopSaves>> open(const SaveOptions &options, Session &session, const StepData &data,
                                                   std::function<Status(const SaveReport &)> told);

  /// Between two steps, in all processes: saves where it is time. Errors: those of a save, also of one in the background that has failed since.
  Status afterStep(const RunState &state, bool isLast);
  /// A signal has ended the run, whose state is saved.
  bool isStopped() const { return stopped; }

private:
  LoopSaves(const SaveOptions &options, Session &session, const StepData &data, std::function<Status(const SaveReport &)> told)
      : options(options), session(session), data(data), told(std::move(told)) {}
  Status tell(const Expected<std::optional<SaveReport>> &report);

  const SaveOptions options;
  Session &session;
  const StepData &data;
  const std::function<Status(const SaveReport &)> told;
  std::unique_ptr<Checkpoints> checkpoints; ///< null: nothing is saved
  std::optional<StopSignals> signals;
  bool stopped = false;
};

} // namespace hpc
