// metrics.jsonl: a line of JSON for every step and every evaluation. In a run that continues from a checkpoint the file keeps the lines of
// earlier steps, so that each step is in it once.
#pragma once

#include "runtime/base/LineFile.h"
#include "runtime/train/RunObserver.h"
#include "runtime/train/observers/RunFacts.h"

namespace hpc {

/// Lines of a step: {"step": 0, "loss": ..., "lr": ..., "grad_norm": ..., "valid_tokens": ..., "seed": ..., "loss_scale": ..., "epoch": ...,
/// "ms": ..., "reader_ms": ..., "tokens_per_s": ..., "mfu": ..., "epoch_mean": {...}, "skipped": false}, without the fields that the plan lacks;
/// "epoch_mean" is of the last step of an epoch. Of an evaluation: {"step": 2, "evaluation": {"loss": ..., "perplexity": ..., "valid_tokens": ...,
/// "batches": ..., "ms": ...}}, with the step that was the last before it. Infinity and NaN are null.
class MetricsFile : public RunObserver {
public:
  /// With `goesOn` the lines of the steps before the first one stay. Lines of later steps, which the run repeats, and an incomplete last line are
  /// removed. `note` is told of that, and of missing steps.
  MetricsFile(std::string path, bool goesOn, const RunFacts &facts, std::function<void(const std::string &)> note)
      : path(std::move(path)), goesOn(goesOn), facts(facts), note(std::move(note)) {}

  /// Creates the file if it does not exist. Errors: a line that no such file has, in which case the file stays as it is.
  Status started(const RunState &state) override;
  Status stepped(const StepReport &report, const RunState &state) override;
  Status evaluated(const EvaluationReport &report, int64_t step) override;

private:
  Status removeFrom(int64_t step);

  const std::string path;
  const bool goesOn;
  const RunFacts facts;
  const std::function<void(const std::string &)> note;
  std::optional<LineFile> file;
};

} // namespace hpc
