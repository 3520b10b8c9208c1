// Curves for TensorBoard, by the names that Hugging Face's Trainer gives them.
#pragma once

#include "runtime/train/RunObserver.h"
#include "runtime/train/observers/EventFile.h"
#include "runtime/train/observers/RunFacts.h"

#include <chrono>

namespace hpc {

/// train/loss, train/learning_rate, train/grad_norm, train/tokens_per_second (or samples), train/mfu, train/loss_scale, train/epoch_loss;
/// eval/loss, eval/perplexity. The step of a point is the number of steps that are done. Loss, rate and norm are those of that step; speeds are means
/// since the point before.
class TensorBoard : public RunObserver {
public:
  using Clock = std::function<std::chrono::system_clock::time_point()>;
  TensorBoard(std::string folder, const RunFacts &facts, Clock now = std::chrono::system_clock::now)
      : folder(std::move(folder)), facts(facts), now(std::move(now)) {}

  Status started(const RunState &state) override;
  Status stepped(const StepReport &report, const RunState &state) override;
  Status evaluated(const EvaluationReport &report, int64_t step) override;

private:
  double time() const { return std::chrono::duration<double>(now().time_since_epoch()).count(); }

  const std::string folder;
  const RunFacts facts;
  const Clock now;
  std::optional<EventFile> file;
  StepMeter meter; ///< since the last point
};

} // namespace hpc
