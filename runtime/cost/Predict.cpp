#include "runtime/cost/Predict.h"

#include "runtime/cost/Durations.h"

namespace hpc::cost {

Expected<Prediction> predict(const plan::Plan &plan, const Machine &machine) {
  Expected<plan::Replay> replay = plan::replayPlan(plan, durationsOf(machine));
  if (!replay.ok())
    return replay.status();
  Prediction prediction;
  prediction.seconds = replay->length;
  prediction.bubble = replay->bubble();
  for (const plan::RankTime &rank : replay->ranks)
    prediction.ranks.push_back({rank.computing, rank.communicating, rank.exposed, replay->length - rank.computing - rank.exposed});
  return prediction;
}

} // namespace hpc::cost
