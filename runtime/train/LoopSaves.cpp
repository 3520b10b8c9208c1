// One save at a time is in the background; the next one waits for it.
#include "runtime/train/LoopSaves.h"

namespace hpc {

Expected<std::unique_ptr<LoopSaves>> LoopSaves::open(const SaveOptions &options, Session &session, const StepData &data,
                                                     std::function<Status(const SaveReport &)> told) {
  std::unique_ptr<LoopSaves> saves(new LoopSaves(options, session, data, std::move(told)));
  if (options.checkpoints.folder.empty())
    return saves;
  Expected<std::unique_ptr<Checkpoints>> opened = Checkpoints::open(options.checkpoints, session.entry(0), session);
  HPC_RETURN_IF_ERROR(opened.status());
  saves->checkpoints = std::move(*opened);
  saves->signals.emplace();
  return saves;
}

Status LoopSaves::tell(const Expected<std::optional<SaveReport>> &report) {
  HPC_RETURN_IF_ERROR(report.status());
  return *report ? session.agree(told(**report)) : Status::success();
}

Status LoopSaves::afterStep(const RunState &state, bool isLast) {
  if (!checkpoints)
    return Status::success();
  HPC_RETURN_IF_ERROR(tell(checkpoints->poll()));
  Expected<StopSignals::Request> request = signals->take(session);
  HPC_RETURN_IF_ERROR(request.status());
  stopped = *request == StopSignals::Request::Stop;
  if (isLast || *request != StopSignals::Request::None || (options.every > 0 && state.steps % options.every == 0)) {
    HPC_RETURN_IF_ERROR(tell(checkpoints->finish()));
    std::map<std::string, std::string> metadata = options.metadata;
    metadata["epoch"] = std::to_string(data.epochOf(state.steps));
    metadata["sample"] = std::to_string(data.sampleOf(state.steps));
    Expected<SaveReport> report = checkpoints->save(state, metadata);
    HPC_RETURN_IF_ERROR(report.status());
    if (report->seconds > 0)
      HPC_RETURN_IF_ERROR(tell(std::optional(*report)));
  }
  return isLast || stopped ? tell(checkpoints->finish()) : Status::success();
}

} // namespace hpc
