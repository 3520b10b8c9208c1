#include "runtime/cost/Predict.h"

#include "runtime/cost/Durations.h"
#include "runtime/cost/StepSimulation.h"

namespace hpc::cost {

Expected<Prediction> predict(const plan::Plan &plan, const Machine &machine, const plan::Durations &durations, const PredictOptions &options) {
  const StepModel model(plan, machine, durations, options.everyRank);
  StepSimulation simulation(model, options.observe);
  HPC_RETURN_IF_ERROR(simulation.run());
  return simulation.take();
}

Expected<Prediction> predict(const plan::Plan &plan, const Machine &machine, const PredictOptions &options) {
  return predict(plan, machine, durationsOf(machine), options);
}

} // namespace hpc::cost
