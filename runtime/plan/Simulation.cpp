// The event loop of the simulation, collectives, and what is true when it ends.
#include "runtime/plan/Simulation.h"

#include "runtime/base/CountText.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFault.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/Schedule.h"

#include <algorithm>

namespace hpc::plan {

Simulation::Simulation(const Plan &plan, Ranks simulated) : plan(plan), ranks(plan.ranksPerStage()) {
  timeline.stages.resize(plan.stages.size());
  for (const Stage &stage : plan.stages)
    streams.push_back(buildStreams(plan, stage));
  states.resize(plan.worldSize());
  standsForAll = simulated == Ranks::OneOfAlike && areAlike();
  for (int32_t rank = int32_t(states.size()); rank-- > 0;) {
    if (standsForAll && rank % ranks != 0)
      continue;
    states[rank].holds.assign(streams[stageOf(rank)].states, -1);
    runnable.push_back(rank);
  }
}

/// Calls visit(micro-batch, coordinate) for each entry of a table; whether it is true for all.
template <typename Visit> static bool allEntries(const ByCoord &table, int64_t ranks, Visit visit) {
  for (int64_t i = 0; i < int64_t(table.values.size()); ++i)
    if (!visit(i / ranks, i % ranks))
      return false;
  return true;
}

/// Whether what is simulated of a rank follows from its stage alone, and it sends to and receives from ranks of its own
/// coordinate. Then a step of all ranks is that of one rank a stage, so many times side by side: the members of a collective
/// arrive at it together, and no rank waits for what another one does not wait for too.
bool Simulation::areAlike() const {
  auto isOfStage = [&](const ByCoord *when) {
    return !when || when->values.size() == 1 || allEntries(*when, ranks, [&](int64_t microBatch, int64_t coordinate) {
             return (when->at(coordinate, microBatch, ranks) != 0) == (when->at(0, microBatch, ranks) != 0);
           });
  };
  auto isOwn = [&](const ByCoord &peer) {
    return (peer.values.size() > 1 || ranks == 1 || peer.values[0] < 0) && allEntries(peer, ranks, [&](int64_t microBatch, int64_t coordinate) {
             int64_t first = peer.at(0, microBatch, ranks), own = peer.at(coordinate, microBatch, ranks);
             return first < 0 ? own < 0 : first % ranks == 0 && own == first + coordinate;
           });
  };
  auto isAlike = [&](const StreamOp &op, const Program &program) {
    const Action &action = program.instructions[op.instruction].action;
    const auto *send = std::get_if<Send>(&action);
    const auto *recv = std::get_if<Recv>(&action);
    return isOfStage(op.when) && (!send || isOwn(send->peer)) && (!recv || isOwn(recv->peer)) &&
           std::all_of(op.uses.begin(), op.uses.end(), [&](const TrackedUse &use) { return isOfStage(use.when); });
  };
  for (size_t stage = 0; stage < streams.size(); ++stage)
    for (size_t program = 0; program < streams[stage].programs.size(); ++program)
      for (const StreamOp &op : streams[stage].programs[program])
        if (op.kind != OpKind::Work && !isAlike(op, plan.stages[stage].programs[program]))
          return false;
  return true;
}

const ScheduleStep &Simulation::stepOf(int32_t rank) const {
  return plan.stages[stageOf(rank)].schedule[states[rank].step];
}

const Instruction &Simulation::instructionAt(const Site &site) const {
  const Stage &stage = plan.stages[stageOf(site.rank)];
  return stage.programs[stage.schedule[site.step].program].instructions[site.instruction];
}

/// "rank 3 (...), schedule step 2 (forward, micro-batch 1), stage 1, program forward, instruction 0 (wait)"
std::string Simulation::siteText(const Site &site) const {
  int64_t stage = stageOf(site.rank);
  return rankText(plan, site.rank) + ", " + stepText(plan.stages[stage], site.step) + ", " +
         instructionText(plan, stage, plan.stages[stage].schedule[site.step].program, site.instruction);
}

/// Each program that works per micro-batch runs once for each of them, and no program is left out.
Status Simulation::checkRuns(int64_t stageIndex) const {
  const Stage &stage = plan.stages[stageIndex];
  std::vector<std::vector<int32_t>> runs(stage.programs.size());
  for (const ScheduleStep &step : stage.schedule)
    runs[step.program].push_back(step.microBatch);
  for (size_t p = 0; p < stage.programs.size(); ++p) {
    const Program &program = stage.programs[p];
    std::string where = "stage " + std::to_string(stageIndex) + ", program " + programText(program) + ": ";
    if (program.instructions.empty())
      continue;
    if (runs[p].empty())
      return fault(where + "the schedule never runs it");
    // A drain completes what no later run of the sender waits for.
    if (program.kind == ProgramKind::Drain || program.kind == ProgramKind::DrainGradient)
      continue;
    int64_t times = program.kind == ProgramKind::Update ? 1 : plan.microBatches;
    std::sort(runs[p].begin(), runs[p].end());
    for (int32_t i = 0; i < int32_t(times); ++i) {
      int64_t count = std::count(runs[p].begin(), runs[p].end(), i);
      if (count != 1)
        return fault(where + "the schedule runs it " + std::to_string(count) + " times for micro-batch " +
                     std::to_string(i) + "; once is needed");
    }
  }
  return Status::success();
}

/// Programs that run once a step read sums of all micro-batches and write what these read: nothing computes after them.
Status Simulation::checkUpdateIsLast(int64_t stageIndex) const {
  const Stage &stage = plan.stages[stageIndex];
  bool isUpdated = false;
  for (int64_t step = 0; step < int64_t(stage.schedule.size()); ++step) {
    ProgramKind kind = stage.programs[stage.schedule[step].program].kind;
    if (isUpdated && computes(kind))
      return fault("stage " + std::to_string(stageIndex) + ", " + stepText(stage, step) +
                   ": runs after the update, which reads what it adds up and writes what it reads; the update must be "
                   "the last that computes");
    isUpdated = isUpdated || isPerStep(kind);
  }
  return Status::success();
}

Status Simulation::run() {
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    HPC_RETURN_IF_ERROR(checkRuns(int64_t(s)));
    HPC_RETURN_IF_ERROR(checkUpdateIsLast(int64_t(s)));
  }
  while (!runnable.empty()) {
    int32_t rank = runnable.back();
    runnable.pop_back();
    HPC_RETURN_IF_ERROR(advance(rank));
  }
  HPC_RETURN_IF_ERROR(deadlock());
  for (int32_t rank = 0; rank < int32_t(states.size()); ++rank) {
    HPC_RETURN_IF_ERROR(finish(rank));
    timeline.length = std::max(timeline.length, states[rank].clock);
  }
  return Status::success();
}

/// Runs a rank until it blocks or is done. A blocked rank stays at its op and tries it again.
Status Simulation::advance(int32_t rank) {
  RankState &state = states[rank];
  const Stage &stage = plan.stages[stageOf(rank)];
  while (state.step < int32_t(stage.schedule.size())) {
    const std::vector<StreamOp> &ops = streams[stageOf(rank)].programs[stage.schedule[state.step].program];
    while (state.op < int32_t(ops.size())) {
      bool blocked = false;
      if (isOn(rank, ops[state.op].when))
        HPC_RETURN_IF_ERROR(execute(rank, ops[state.op], blocked));
      if (blocked)
        return Status::success();
      ++state.op;
    }
    ++state.step;
    state.op = 0;
  }
  return Status::success();
}

Status Simulation::execute(int32_t rank, const StreamOp &op, bool &blocked) {
  switch (op.kind) {
  case OpKind::Work:
    if (rank % ranks == 0)
      timeline.stages[stageOf(rank)].push_back({states[rank].clock, states[rank].step});
    ++states[rank].clock;
    return Status::success();
  case OpKind::Touch:
    for (const TrackedUse &one : op.uses)
      HPC_RETURN_IF_ERROR(use(rank, op, one));
    return Status::success();
  case OpKind::Collective:
    return meet(rank, op, blocked);
  case OpKind::Send:
  case OpKind::Recv:
    return post(rank, op);
  case OpKind::Wait:
    return wait(rank, op, blocked);
  }
  return Status::success();
}

/// Arrives at a collective; the last member lets all go on. A posted one is complete by then, but in flight.
Status Simulation::meet(int32_t rank, const StreamOp &op, bool &blocked) {
  int32_t request = std::get<Collective>(instructionAt(siteOf(rank, op)).action).request;
  if (request < 0) {
    for (const TrackedUse &one : op.uses)
      HPC_RETURN_IF_ERROR(use(rank, op, one));
  } else {
    Post post;
    post.request = request;
    post.complete = true;
    Expected<int32_t> launched = launch(rank, op, post);
    if (!launched.ok())
      return launched.status();
  }
  if (standsForAll) // for all members
    return Status::success();
  int64_t stage = stageOf(rank);
  const StageStreams &stream = streams[stage];
  int64_t key = ((int64_t(op.signature) * ranks + stream.groupOf[op.signature][rank % ranks]) << 17) + stage;
  Meeting &meeting = meetings[key];
  if (meeting.members.empty()) {
    meeting.first = siteOf(rank, op);
  } else {
    const auto &mine = std::get<Collective>(instructionAt(siteOf(rank, op)).action);
    const auto &first = std::get<Collective>(instructionAt(meeting.first).action);
    if (mine.kind != first.kind || mine.reduce != first.reduce || mine.dtype != first.dtype ||
        mine.count != first.count)
      return fault(siteText(siteOf(rank, op)) + " (" + std::to_string(mine.count) + " x " + hpc::name(mine.dtype) +
                   ") meets " + siteText(meeting.first) + " (" + std::to_string(first.count) + " x " +
                   hpc::name(first.dtype) + "); the members of a group must issue the same collectives in one order");
  }
  meeting.members.push_back(rank);
  if (int64_t(meeting.members.size()) < stream.groupSizes[op.signature]) {
    states[rank].blockedMeeting = key;
    blocked = true;
    return Status::success();
  }
  int64_t clock = 0;
  for (int32_t member : meeting.members)
    clock = std::max(clock, states[member].clock);
  for (int32_t member : meeting.members) {
    states[member].clock = clock;
    states[member].blockedMeeting = -1;
    if (member == rank)
      continue;
    ++states[member].op; // it has done its part; its own loop goes on behind the collective
    runnable.push_back(member);
  }
  meetings.erase(key);
  return Status::success();
}

std::string Simulation::waitText(int32_t rank) const {
  const RankState &state = states[rank];
  const Stage &stage = plan.stages[stageOf(rank)];
  const StreamOp &op = streams[stageOf(rank)].programs[stage.schedule[state.step].program][state.op];
  std::string text = siteText(siteOf(rank, op)) + " waits for ";
  if (state.blockedPost >= 0) {
    const Post &post = posts[state.blockedPost];
    return text + (post.kind == OpKind::Send ? "a receive by rank " : "a send from rank ") + std::to_string(post.peer) +
           " on channel " + std::to_string(post.channel) + " of " + std::to_string(post.bytes) + " bytes (node " +
           instructionAt(post.site).node + ")";
  }
  const Meeting &meeting = meetings.at(state.blockedMeeting);
  int64_t missing = streams[stageOf(rank)].groupSizes[op.signature] - int64_t(meeting.members.size());
  return text + countText(missing, "more member") + " of its group";
}

/// Nobody can run any more: each rank must be at its end.
Status Simulation::deadlock() const {
  std::string text;
  int64_t blocked = 0;
  for (int32_t rank = 0; rank < int32_t(states.size()); ++rank) {
    if (states[rank].blockedPost < 0 && states[rank].blockedMeeting < 0)
      continue;
    if (++blocked <= 4)
      text += (blocked > 1 ? "; " : "") + waitText(rank);
  }
  if (blocked == 0)
    return Status::success();
  return fault("deadlock: " + std::to_string(blocked) + " of " + std::to_string(states.size()) +
               " ranks wait for ever: " + text);
}

/// Nothing is on its way when the step ends.
Status Simulation::finish(int32_t rank) const {
  if (states[rank].flights.empty())
    return Status::success();
  const Post &post = posts[states[rank].flights[0]];
  return fault(siteText(post.site) + ": the step ends before a wait on request " + std::to_string(post.request) +
               " in slot " + std::to_string(post.slot) + "; drain it");
}

Status simulatePlan(const Plan &plan, Timeline *timeline) {
  Simulation simulation(plan, Simulation::Ranks::OneOfAlike);
  Status status = simulation.run();
  if (!status.ok() && !simulation.isOfAll()) // the message names all ranks
    return Simulation(plan).run();
  if (status.ok() && timeline)
    *timeline = simulation.takeTimeline();
  return status;
}

} // namespace hpc::plan
