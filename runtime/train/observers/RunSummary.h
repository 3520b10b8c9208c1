// Memory and time of a run: lines before its first step and after its last.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/train/RunObserver.h"
#include "runtime/train/observers/RunFacts.h"

namespace hpc {

/// "memory of each of ranks 0-1: 12.3 MiB (weights 4.00 MiB, states 8.00 MiB, the step's own 300 KiB)": by the plan, on the device; one line for
/// stages that are alike.
std::vector<std::string> memoryLines(const plan::Plan &plan);

/// At the end "100 steps in 12.3 s, of which 0.1 s waiting for data, 2 evaluations in 0.3 s, 3 saves that stopped it for 0.2 s; 8192 tokens/s, MFU
/// 41.2%; this process held at most 1.2 GiB". Times are those of this process.
class RunSummary : public RunObserver {
public:
  /// `line` prints a line of its own. The plan outlives the object.
  RunSummary(const RunFacts &facts, const plan::Plan &plan, TextSink line) : facts(facts), plan(&plan), line(std::move(line)) {}

  Status started(const RunState &state) override;
  Status stepped(const StepReport &report, const RunState &state) override;
  Status evaluated(const EvaluationReport &report, int64_t step) override;
  Status saved(const SaveReport &report) override;
  Status ended(const RunState &state) override;

private:
  const RunFacts facts;
  const plan::Plan *plan;
  const TextSink line;
  int64_t first = 0, evaluations = 0, saves = 0;
  double evaluating = 0, saving = 0; ///< seconds
  StepMeter meter;
};

} // namespace hpc
