// The certain causes first. A learning rate is blamed for nothing before there was an update.
#include "runtime/train/SkippedStep.h"

#include "runtime/base/NumberText.h"

#include <cmath>

namespace hpc {

std::string whySkipped(const StepReport &report, const StepData &data, const RunState &state) {
  if (report.validTokens && *report.validTokens == 0)
    return "no label of its batch counts, so the loss is a mean over nothing; give batches with labels";
  if (std::string nan = data.findNumber(report.step, [](double number) { return std::isnan(number); }); !nan.empty())
    return nan + "; mend the data";
  std::string infinity = data.findNumber(report.step, [](double number) { return std::isinf(number); });
  const std::string finite = infinity.empty() ? "its data are finite" : infinity + ", which may be meant";
  const std::string rate = state.updates > 0 ? ", or use a smaller --lr from an earlier checkpoint on if the loss grew in the steps before" : "";
  if (!std::isfinite(report.loss))
    return finite + "; its loss is not finite: a value on the way there leaves the range of its type; look at the weights and the scale "
                    "of the data" + rate;
  if (report.lossScale && *report.lossScale > LossScale::least)
    return finite + "; its loss is finite: the scale may be too large for 16 bits; a run halves it from the second overflow on, --loss-scale gives another";
  return finite + "; its loss is finite: a gradient, or the sum of the squares of all, leaves the range of its type; look at the weights "
                  "and the scale of the data" + rate;
}

} // namespace hpc
