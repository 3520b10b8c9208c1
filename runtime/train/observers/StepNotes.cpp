// Sums over the window are made anew for each step: they cost nothing beside it, and gather no rounding.
#include "runtime/train/observers/StepNotes.h"

#include "runtime/base/FormattedText.h"
#include "runtime/base/NumberText.h"
#include "runtime/train/SkippedStep.h"

#include <algorithm>
#include <cmath>

namespace hpc {

double LossSpikes::mean() const {
  double sum = 0;
  for (double loss : recent)
    sum += loss;
  return sum / double(recent.size());
}

std::optional<double> LossSpikes::add(double loss) {
  if (!std::isfinite(loss))
    return std::nullopt;
  std::optional<double> found;
  if (deviations > 0 && recent.size() >= fewest) {
    const double middle = mean();
    double squares = 0;
    for (double one : recent)
      squares += (one - middle) * (one - middle);
    const double deviation = std::max(std::sqrt(squares / double(recent.size())), 1e-6 * std::abs(middle));
    if (loss - middle > deviations * deviation)
      found = (loss - middle) / deviation;
  }
  recent.push_back(loss);
  if (recent.size() > window)
    recent.pop_front();
  return found;
}

std::string gradientNormText(const StepReport &report) {
  return "the gradient norm is " + numberText(report.gradientNorm) +
         (report.lossScale ? " with a loss scale of " + numberText(*report.lossScale) : "");
}

Status StepNotes::stepped(const StepReport &report, const RunState &state) {
  const std::string step = "step " + std::to_string(report.step) + ": ";
  const double mean = spikes.mean();
  if (report.wasSkipped())
    note(step + gradientNormText(report) + ", so weights, states and the count of updates stay as they were; " + whySkipped(report, *data, state));
  else if (!std::isfinite(report.loss))
    note(step + "the loss is " + numberText(printed(report.loss)) +
         ", beyond the range in which it is added up; its gradients are finite, so the step was done");
  else if (std::optional<double> deviations = spikes.add(report.loss))
    note(step + formattedText("the loss of %.6g is a spike: %.1f standard deviations above the mean of the steps before, %.6g; ", report.loss, *deviations, mean) +
         "--spike sets from how many on this is told");
  return Status::success();
}

} // namespace hpc
