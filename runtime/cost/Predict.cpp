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

double Prediction::exposed() const {
  double sum = 0;
  for (const RankSeconds &rank : ranks)
    sum += rank.exposed;
  return seconds > 0 ? sum / seconds / double(ranks.size()) : 0;
}

std::string bindingOf(double exposed, double bubble) {
  const double computing = 1 - exposed - bubble;
  return computing >= exposed && computing >= bubble ? "computation" : exposed >= bubble ? "communication" : "pipeline";
}

plan::PredictedStep figuresOf(const plan::Plan &plan, const Machine &machine, const Prediction &prediction) {
  plan::PredictedStep step{machine.name, prediction.seconds, prediction.mfu, prediction.exposed(), prediction.bubble, 0, bindingOf(prediction.exposed(), prediction.bubble)};
  const int64_t ranks = plan.ranksPerStage();
  const std::vector<plan::MemoryFacts> memory = plan::staticFacts(plan).memory;
  for (size_t stage = 0; stage < memory.size(); ++stage) {
    const int64_t needed = memory[stage].total(), there = machine.memoryOf(int64_t(stage) * ranks, ranks);
    step.memory = std::max(step.memory, needed);
    if (there > 0 && needed > there)
      step.binds = "memory";
  }
  return step;
}

} // namespace hpc::cost
