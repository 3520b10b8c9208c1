// The plan itself is simulated.
#include "tools/compiling/PredictedStep.h"

#include "runtime/base/FormattedText.h"
#include "runtime/cost/Predict.h"
#include "runtime/plan/Entries.h"

namespace hpc {

Expected<std::optional<plan::PredictedStep>> predictedStep(const plan::Plan &plan, const Options &options) {
  if (options.machine.empty())
    return std::optional<plan::PredictedStep>();
  const cost::Machine machine = machineOf(options);
  const plan::Plan run = plan::planOf(plan, 0);
  Expected<cost::Prediction> step = cost::predict(run, machine);
  if (!step.ok())
    return step.status();
  return std::optional(cost::figuresOf(run, machine, *step));
}

std::string stepText(const plan::Plan &plan, const plan::PredictedStep &step) {
  const plan::StepItems items = plan::itemsOf(plan::planOf(plan, 0));
  const std::string speed = formattedText(" %.4g s, %.6g ", step.seconds, step.seconds > 0 ? double(items.count) / step.seconds : 0);
  return "\nstep on " + step.machine + ":" + speed + items.name +
         formattedText("/s, MFU %.1f%%, bubble %.1f%%; hpc-run --backend=null --machine has its parts\n", 100 * step.mfu, 100 * step.bubble);
}

} // namespace hpc
