// Notes about steps that are not as they should be: skipped ones, losses that are no numbers, losses that jump up.
#pragma once

#include "runtime/train/RunObserver.h"

#include <deque>
#include <functional>

namespace hpc {

/// Finds losses far above the recent ones: beyond their mean plus so many of their standard deviations. Recent are the last 100 losses of this
/// process, at least 20 of them; losses that are not finite do not count. A deviation counts as at least a millionth of the mean.
class LossSpikes {
public:
  static constexpr size_t window = 100, fewest = 20;

  explicit LossSpikes(double deviations) : deviations(deviations) {}
  /// The number of deviations that the loss lies above the mean, if it is a spike. It then belongs to the recent ones.
  std::optional<double> add(double loss);
  double mean() const;

private:
  const double deviations; ///< 0: nothing is a spike
  std::deque<double> recent;
};

class StepNotes : public RunObserver {
public:
  /// `data` outlive it. `note` prints a line of its own. `spike`: for LossSpikes.
  StepNotes(const StepData &data, double spike, std::function<void(const std::string &)> note) : data(&data), spikes(spike), note(std::move(note)) {}
  Status stepped(const StepReport &report, const RunState &state) override;

private:
  const StepData *data;
  LossSpikes spikes;
  const std::function<void(const std::string &)> note;
};

/// "the gradient norm is nan with a loss scale of 1024".
std::string gradientNormText(const StepReport &report);

} // namespace hpc
