// A line for each step, as hpc-run prints it where there is no terminal.
#pragma once

#include "runtime/train/RunObserver.h"
#include "runtime/train/observers/RunFacts.h"

namespace hpc {

/// "evaluation after step 19: loss 3.25, perplexity 25.8, valid tokens 4096, 8 batches, 31.0 ms" without the end of the line.
std::string evaluationText(const EvaluationReport &report, int64_t step);
/// "epoch 0: loss 3.25, gradient norm 1.5, means of 20 steps; 1 step skipped", likewise.
std::string epochText(const EpochReport &report);

/// "checkpoint 'runs/a/checkpoints/step-00000500': 1.5 GiB in 0.62 s, in which no step ran for 0.031 s", likewise.
std::string savedText(const SaveReport &report);

/// "step 0: loss 3.25, lr 0.001, gradient norm 1.5, 31.0 ms".
class StepLines : public RunObserver {
public:
  StepLines(const RunFacts &facts, TextSink print) : facts(facts), print(std::move(print)) {}
  Status stepped(const StepReport &report, const RunState &state) override;
  Status evaluated(const EvaluationReport &report, int64_t step) override;
  Status saved(const SaveReport &report) override;

private:
  const RunFacts facts;
  const TextSink print;
};

} // namespace hpc
