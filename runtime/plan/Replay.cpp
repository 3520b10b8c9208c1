#include "runtime/plan/Replay.h"

#include "runtime/plan/Simulation.h"

namespace hpc::plan {

double Replay::bubble() const {
  if (ranks.empty() || length == 0)
    return 0;
  double busy = 0;
  for (const RankTime &rank : ranks)
    busy += rank.computing + rank.exposed;
  return 1 - busy / (length * double(ranks.size()));
}

Expected<Replay> replayPlan(const Plan &plan, const Durations &durations) {
  Simulation simulation(plan, Simulation::Ranks::All, &durations);
  HPC_RETURN_IF_ERROR(simulation.run());
  return simulation.takeReplay();
}

} // namespace hpc::plan
