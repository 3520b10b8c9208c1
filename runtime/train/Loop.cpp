// An error of the process of rank 0 ends all of them: each turn of the loop agrees on one status.
#include "runtime/train/Loop.h"

#include "runtime/base/CountText.h"
#include "runtime/train/SkippedStep.h"

namespace hpc {

namespace {
struct Telling {
  const std::vector<std::unique_ptr<RunObserver>> &observers;

  template <typename... Parameters, typename... Arguments>
  Status operator()(Status (RunObserver::*event)(Parameters...), const Arguments &...arguments) const {
    for (const std::unique_ptr<RunObserver> &observer : observers)
      HPC_RETURN_IF_ERROR(((*observer).*event)(arguments...));
    return Status::success();
  }
};
} // namespace

/// The error of a run in which no step changes anything any more, in all processes; `report` is that of the last step.
static Status tooManySkipped(TrainingRun &run, Session &session, const StepData &data, const StepReport &report, bool isHome) {
  const Status where = run.findNotFinite();
  if (!isHome)
    return session.agree(Status::success());
  return session.agree(Status::error(
      ErrorKind::Model, countText(run.skippedInRow(), "step") + " in a row, to step " + std::to_string(report.step) +
                            ", had a gradient norm that is not finite and changed nothing, so the run ends (--max-skipped); of the last one: " +
                            whySkipped(report, data, run.state()) + (where.ok() ? "" : "; in it, " + where.message())));
}

Status trainingLoop(const LoopOptions &options, TrainingRun &run, Session &session, const StepData &data, Evaluation *evaluation,
                    const std::vector<std::unique_ptr<RunObserver>> &observers, bool isHome) {
  const Telling tell{observers};
  HPC_RETURN_IF_ERROR(session.agree(tell(&RunObserver::started, run.state())));
  Expected<std::unique_ptr<LoopSaves>> saves =
      LoopSaves::open(options.saves, session, data, [&](const SaveReport &report) { return tell(&RunObserver::saved, report); });
  HPC_RETURN_IF_ERROR(saves.status());
  while (run.state().steps < options.steps && !(*saves)->isStopped()) {
    Expected<StepReport> report = run.run();
    HPC_RETURN_IF_ERROR(report.status());
    HPC_RETURN_IF_ERROR(session.agree(tell(&RunObserver::stepped, *report, run.state())));
    if (run.skippedInRow() == options.mostSkipped)
      return tooManySkipped(run, session, data, *report, isHome);
    const int64_t done = run.state().steps;
    if (evaluation && (done == options.steps || (options.evaluateEvery > 0 && done % options.evaluateEvery == 0))) {
      Expected<EvaluationReport> evaluated = evaluation->run();
      HPC_RETURN_IF_ERROR(evaluated.status());
      HPC_RETURN_IF_ERROR(session.agree(tell(&RunObserver::evaluated, *evaluated, done - 1)));
    }
    HPC_RETURN_IF_ERROR((*saves)->afterStep(run.state(), done == options.steps));
  }
  return session.agree(tell(&RunObserver::ended, run.state()));
}

} // namespace hpc
