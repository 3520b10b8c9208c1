// The walk of the ranks; transfers are in StepTransfers.cpp. What happens at one moment does not depend on the order in which it is
// handled: first all ends, then ranks in their order; rates change when nothing else happens any more.
#include "runtime/cost/StepSimulation.h"

#include <algorithm>
#include <cmath>

namespace hpc::cost {

using namespace plan;

StepSimulation::StepSimulation(const StepModel &model, const Observer &observe)
    : model(model), observe(observe), clock(model.simulated.size()), ranks(model.simulated.size()), queues(model.groupSizes.size()),
      meetings(model.groupSizes.size()), times(model.parts.size()) {
  for (int32_t rank = 0; rank < int32_t(ranks.size()); ++rank) {
    ranks[size_t(rank)].path.assign(model.parts.size(), 0);
    ranks[size_t(rank)].loads.assign(2 * model.machine.links.size(), 0);
    ranksOfHost[model.simulated[size_t(rank)].host].push_back(rank);
    ready.push(rank);
  }
}

const ScheduleStep &StepSimulation::stepOf(int32_t rank) const {
  return model.plan.stages[size_t(model.simulated[size_t(rank)].stage)].schedule[size_t(ranks[size_t(rank)].step)];
}

int64_t StepSimulation::requestKey(int32_t rank, int64_t request) const {
  const Stage &stage = model.plan.stages[size_t(model.simulated[size_t(rank)].stage)];
  return (request << 20) + stepOf(rank).microBatch % stage.requests[size_t(request)];
}

Status StepSimulation::run() {
  while (true) {
    while (!ready.empty() || clock.isDue()) {
      if (clock.isDue()) {
        end(clock.next());
        continue;
      }
      const int32_t rank = ready.top();
      ready.pop();
      advance(rank);
    }
    settle();
    if (clock.isIdle())
      break;
    end(clock.next());
  }
  for (const Rank &rank : ranks)
    if (!rank.isFinished)
      return Status::error(ErrorKind::Plan, "a step cannot be simulated, since ranks wait for ever; check the plan");
  return Status::success();
}

void StepSimulation::end(size_t activity) {
  if (activity >= ranks.size())
    return finish(int32_t(activity - ranks.size()));
  const int32_t rank = int32_t(activity);
  vacate(rank);
  if (ranks[activity].carried >= 0)
    return finishCarrying(rank);
  finishWork(rank);
  goOn(rank);
}

/// Runs a rank until it blocks or is done. Whoever ends what it is blocked by moves it behind the op.
void StepSimulation::advance(int32_t rank) {
  Rank &state = ranks[size_t(rank)];
  const SimulatedRank &simulated = model.simulated[size_t(rank)];
  const std::vector<ScheduleStep> &schedule = model.plan.stages[size_t(simulated.stage)].schedule;
  for (; state.step < int32_t(schedule.size()); ++state.step, state.op = 0) {
    const ScheduleStep &step = schedule[size_t(state.step)];
    const std::vector<TimedOp> &ops = model.programs[size_t(simulated.stage)][size_t(step.program)];
    for (; state.op < int32_t(ops.size()); ++state.op)
      if (const TimedOp &op = ops[size_t(state.op)]; model.isOn(op.when, simulated, step.microBatch) && execute(rank, op))
        return;
  }
  state.since = clock.now();
  state.isFinished = true;
}

bool StepSimulation::execute(int32_t rank, const TimedOp &op) {
  switch (op.kind) {
  case TimedKind::Work:
    return compute(rank);
  case TimedKind::Collective:
    return meet(rank, op);
  case TimedKind::Send:
  case TimedKind::Recv:
    return post(rank, op);
  case TimedKind::Wait:
    return wait(rank, op);
  }
  return false;
}

void StepSimulation::goOn(int32_t rank) {
  ++ranks[size_t(rank)].op;
  ready.push(rank);
}

// ---- computation --------------------------------------------------------------------------------

bool StepSimulation::compute(int32_t rank) {
  Rank &state = ranks[size_t(rank)];
  const SimulatedRank &simulated = model.simulated[size_t(rank)];
  state.work = model.workOf(simulated, stepOf(rank).program, state.op, stepOf(rank).microBatch);
  state.since = clock.now();
  worked.flops += simulated.weight * state.work.flops;
  worked.repeatedFlops += simulated.weight * state.work.repeatedFlops;
  worked.ideal += simulated.weight * state.work.ideal;
  if (state.work.total() <= 0)
    return false;
  occupy(rank, state.work.total());
  return true;
}

void StepSimulation::finishWork(int32_t rank) {
  Rank &state = ranks[size_t(rank)];
  const SimulatedRank &simulated = model.simulated[size_t(rank)];
  const double passed = clock.now() - state.since;
  state.seconds.computing += passed;
  for (int32_t part : {Products, Kernels, Copies})
    state.path[size_t(part)] += state.work.seconds[part] / simulated.speed;
  extend(state.path, Sharing, 0, passed - state.work.total() / simulated.speed);
  if (!observe)
    return;
  const int32_t program = stepOf(rank).program, microBatch = stepOf(rank).microBatch;
  const TimedOp &op = model.programs[size_t(simulated.stage)][size_t(program)][size_t(state.op)];
  double start = state.since;
  for (int32_t i = op.instruction; i < op.end; ++i) {
    const double seconds = model.workOfInstruction(simulated, program, i, microBatch).total() * passed / state.work.total();
    if (seconds > 0)
      observe({simulated.rank, state.step, i, start, start + seconds, RunKind::Computes});
    start += seconds;
  }
}

void StepSimulation::occupy(int32_t rank, double seconds) {
  clock.start(size_t(rank), seconds);
  touch(rank);
  if (!isCarriedByRanks())
    return;
  const SimulatedRank &simulated = model.simulated[size_t(rank)];
  activeOnHost[simulated.host] += simulated.weightOnHost;
  for (int32_t other : ranksOfHost[simulated.host])
    touch(other);
}

void StepSimulation::vacate(int32_t rank) {
  if (!isCarriedByRanks())
    return;
  const SimulatedRank &simulated = model.simulated[size_t(rank)];
  activeOnHost[simulated.host] -= simulated.weightOnHost;
  for (int32_t other : ranksOfHost[simulated.host])
    touch(other);
}

// ---- standing -----------------------------------------------------------------------------------

void StepSimulation::stand(int32_t rank, int32_t transfer) {
  ranks[size_t(rank)].since = clock.now();
  transfers[size_t(transfer)].standing.push_back(rank);
}

void StepSimulation::endStanding(int32_t rank, const Transfer &transfer) {
  Rank &state = ranks[size_t(rank)];
  const double stood = clock.now() - state.since;
  if (stood <= 0)
    return;
  const double exposed = transfer.start < 0 ? 0 : clock.now() - std::max(state.since, transfer.start);
  state.seconds.exposed += exposed;
  times[size_t(transfer.part)].exposed += exposed * model.simulated[size_t(rank)].weight;
  state.path = transfer.path;
  const TimedOp &op = model.programs[size_t(model.simulated[size_t(rank)].stage)][size_t(stepOf(rank).program)][size_t(state.op)];
  observeRun(rank, state.step, op.instruction, state.since, RunKind::Stands);
}

void StepSimulation::observeRun(int32_t rank, int32_t step, int32_t instruction, double start, RunKind kind) const {
  if (observe)
    observe({model.simulated[size_t(rank)].rank, step, instruction, start, clock.now(), kind});
}

/// Differences that rounding alone makes are no part of the way.
void StepSimulation::extend(Path &path, int32_t part, double seconds, double passed) const {
  path[size_t(part)] += seconds;
  const double more = passed - seconds;
  if (std::abs(more) > 1e-12 * clock.now())
    path[Sharing] += more;
}

// ---- rates --------------------------------------------------------------------------------------

void StepSimulation::touch(int32_t rank) {
  if (ranks[size_t(rank)].isDirty)
    return;
  ranks[size_t(rank)].isDirty = true;
  dirty.push_back(rank);
}

void StepSimulation::settle() {
  for (int32_t rank : dirty) {
    Rank &state = ranks[size_t(rank)];
    state.isDirty = false;
    if (clock.isRunning(size_t(rank)))
      clock.setRate(size_t(rank), computingRate(rank));
    for (int32_t transfer : state.active)
      clock.setRate(ranks.size() + size_t(transfer), transferRate(transfers[size_t(transfer)]));
  }
  dirty.clear();
}

double StepSimulation::computingRate(int32_t rank) const {
  const SimulatedRank &simulated = model.simulated[size_t(rank)];
  const Machine &machine = model.machine;
  if (isCarriedByRanks())
    return simulated.speed * std::min(1.0, double(machine.cores) / activeOnHost.at(simulated.host));
  return simulated.speed / (ranks[size_t(rank)].active.empty() ? 1 : machine.overlapSlowdown);
}

/// Ranks divide what they send, and what they receive, over a link between all transfers that they have there.
double StepSimulation::transferRate(const Transfer &transfer) const {
  int32_t most = 1;
  for (size_t i = 0; i < transfer.members.size(); ++i) {
    const int32_t *loads = &ranks[size_t(transfer.members[i].rank)].loads[size_t(2 * transfer.level)];
    most = std::max(most, !transfer.isMessage ? std::max(loads[0], loads[1]) : loads[i]);
  }
  return 1.0 / most;
}

// ---- the result ---------------------------------------------------------------------------------

Prediction StepSimulation::take() {
  Prediction prediction;
  const Rank *last = &ranks.front();
  for (const Rank &rank : ranks)
    if (std::make_pair(rank.since, rank.path) > std::make_pair(last->since, last->path))
      last = &rank;
  const double world = double(model.simulatedBy.size());
  prediction.seconds = last->since;
  prediction.simulatedRanks = int64_t(ranks.size());
  for (int32_t by : model.simulatedBy) {
    RankSeconds seconds = ranks[size_t(by)].seconds;
    seconds.idle = std::max(0.0, prediction.seconds - seconds.computing - seconds.exposed);
    prediction.bubble += seconds.idle;
    prediction.ranks.push_back(seconds);
  }
  if (prediction.seconds > 0) {
    prediction.bubble /= world * prediction.seconds;
    prediction.mfu = worked.ideal / (world * prediction.seconds);
  }
  for (size_t part = 0; part < model.parts.size(); ++part) {
    if (last->path[part] != 0)
      prediction.path.push_back({model.parts[part], last->path[part]});
    if (times[part].seconds > 0)
      prediction.transfers.push_back({model.parts[part], times[part].seconds / world, times[part].exposed / world});
  }
  auto byLength = [](const auto &one, const auto &other) { return std::tie(other.seconds, one.what) < std::tie(one.seconds, other.what); };
  std::sort(prediction.path.begin(), prediction.path.end(), byLength);
  std::sort(prediction.transfers.begin(), prediction.transfers.end(), byLength);
  prediction.flops = worked.flops;
  prediction.repeatedFlops = worked.repeatedFlops;
  prediction.bytesSent = bytesSent;
  return prediction;
}

} // namespace hpc::cost
