// Collectives and messages of the simulation: meeting, queues, waiting, and who carries them.
#include "runtime/cost/StepSimulation.h"

#include <algorithm>

namespace hpc::cost {

using namespace plan;

int32_t StepSimulation::makeTransfer(int32_t rank, const TimedOp &op, int32_t users) {
  int32_t number = int32_t(transfers.size());
  if (freeTransfers.empty()) {
    transfers.emplace_back();
    clock.grow(ranks.size() + transfers.size());
  } else {
    number = freeTransfers.back();
    freeTransfers.pop_back();
  }
  Transfer &transfer = transfers[size_t(number)];
  transfer.readyAt = transfer.start = -1;
  transfer.isDone = false;
  transfer.part = op.part;
  transfer.users = transfer.carrying = users;
  transfer.path.assign(model.parts.size(), -1);
  return number;
}

/// The way to a transfer is that of the last to come; of several that come together, any that all orders choose.
void StepSimulation::join(int32_t number, int32_t rank, const TimedOp &op) {
  Transfer &transfer = transfers[size_t(number)];
  transfer.members.push_back({rank, ranks[size_t(rank)].step, op.instruction});
  if (clock.now() > transfer.readyAt || ranks[size_t(rank)].path > transfer.path)
    transfer.path = ranks[size_t(rank)].path;
  transfer.readyAt = clock.now();
}

void StepSimulation::leave(int32_t number) {
  Transfer &transfer = transfers[size_t(number)];
  if (--transfer.users > 0)
    return;
  transfer.members.clear();
  transfer.standing.clear();
  freeTransfers.push_back(number);
}

bool StepSimulation::meet(int32_t rank, const TimedOp &op) {
  const SimulatedRank &simulated = model.simulated[size_t(rank)];
  const auto &collective = std::get<Collective>(op.action->action);
  const int32_t group = simulated.groups[size_t(op.grouping)], size = model.groupSizes[size_t(group)];
  Meetings &met = meetings[size_t(group)];
  const size_t index = size_t(met.next[rank]++ - met.first);
  if (index == met.open.size()) {
    const int32_t number = makeTransfer(rank, op, size);
    Transfer &made = transfers[size_t(number)];
    made.isMessage = false;
    made.isPosted = collective.request >= 0;
    made.seconds = model.secondsOf(simulated, stepOf(rank).program, op.instruction, stepOf(rank).microBatch);
    made.level = model.levelOf(simulated, op.grouping);
    made.queue = group;
    met.open.push_back(number);
  }
  const int32_t number = met.open[index];
  join(number, rank, op);
  bytesSent += simulated.weight * op.bytes;
  const bool isPosted = transfers[size_t(number)].isPosted;
  if (isPosted)
    ranks[size_t(rank)].requests[requestKey(rank, collective.request)] = number;
  else
    stand(rank, number);
  if (int32_t(transfers[size_t(number)].members.size()) == size) {
    met.open.pop_front(); // members post in one order, so all have come to those before it
    ++met.first;
    beReady(number);
  }
  return !isPosted;
}

bool StepSimulation::post(int32_t rank, const TimedOp &op) {
  const SimulatedRank &simulated = model.simulated[size_t(rank)];
  const bool isSend = op.kind == TimedKind::Send;
  int64_t peer = -1, channel = 0, request = 0;
  auto take = [&](const auto &message) {
    peer = message.peer.at(simulated.coordinate, stepOf(rank).microBatch, model.ranksPerStage);
    channel = message.channel;
    request = message.request;
  };
  isSend ? take(std::get<Send>(op.action->action)) : take(std::get<Recv>(op.action->action));
  if (peer < 0)
    return false;
  const int32_t other = model.simulatedBy[size_t(peer)], sender = isSend ? rank : other, receiver = isSend ? other : rank;
  Lane &lane = lanes[(uint64_t(sender) << 38) | (uint64_t(receiver) << 21) | uint64_t(channel)];
  std::deque<int32_t> &mine = isSend ? lane.sends : lane.recvs, &others = isSend ? lane.recvs : lane.sends;
  int32_t number = -1;
  const bool isMet = !others.empty();
  if (isMet) {
    number = others.front();
    others.pop_front();
  } else {
    number = makeTransfer(rank, op, 2);
    mine.push_back(number);
  }
  join(number, rank, op);
  ranks[size_t(rank)].requests[requestKey(rank, request)] = number;
  Transfer &transfer = transfers[size_t(number)];
  if (isSend) {
    transfer.isMessage = transfer.isPosted = true;
    transfer.seconds = model.secondsOf(simulated, stepOf(rank).program, op.instruction, stepOf(rank).microBatch);
    transfer.level = linkLevel(model.machine, std::min<int64_t>(simulated.rank, peer), std::max<int64_t>(simulated.rank, peer));
    bytesSent += simulated.weight * op.bytes;
    if (isMet)
      std::swap(transfer.members[0], transfer.members[1]);
  }
  if (!isMet)
    return false;
  if (isCarriedByRanks()) {
    ranks[size_t(rank)].since = clock.now();
    carry(rank, number);
    return true;
  }
  auto [queue, isNew] = messageQueues.emplace((int64_t(sender) << 32) + receiver, int32_t(queues.size()));
  if (isNew)
    queues.emplace_back();
  transfers[size_t(number)].queue = queue->second;
  beReady(number);
  return false;
}

bool StepSimulation::wait(int32_t rank, const TimedOp &op) {
  auto &requests = ranks[size_t(rank)].requests;
  auto found = requests.find(requestKey(rank, std::get<Wait>(op.action->action).request));
  if (found == requests.end())
    return false;
  const int32_t number = found->second;
  requests.erase(found);
  const Transfer &transfer = transfers[size_t(number)];
  if (transfer.isDone) {
    leave(number);
    return false;
  }
  stand(rank, number);
  if (isCarriedByRanks() && !transfer.isMessage && transfer.start >= 0) { // all have come
    transfers[size_t(number)].standing.pop_back();
    carry(rank, number);
  }
  return true;
}

// ---- queues -------------------------------------------------------------------------------------

void StepSimulation::beReady(int32_t number) {
  Transfer &transfer = transfers[size_t(number)];
  if (isCarriedByRanks()) {
    transfer.start = clock.now();
    std::vector<int32_t> standing;
    standing.swap(transfer.standing);
    for (int32_t rank : standing)
      carry(rank, number);
    return;
  }
  Queue &queue = queues[size_t(transfer.queue)];
  if (queue.active >= 0)
    queue.waiting.push_back(number);
  else
    begin(number);
}

void StepSimulation::begin(int32_t number) {
  Transfer &transfer = transfers[size_t(number)];
  transfer.start = clock.now();
  queues[size_t(transfer.queue)].active = number;
  if (transfer.seconds <= 0)
    return finish(number);
  clock.start(ranks.size() + size_t(number), transfer.seconds);
  for (size_t i = 0; i < transfer.members.size(); ++i) {
    Rank &rank = ranks[size_t(transfer.members[i].rank)];
    rank.active.push_back(number);
    for (size_t way : {0, 1})
      rank.loads[size_t(2 * transfer.level) + way] += !transfer.isMessage || way == i;
    touch(transfer.members[i].rank);
  }
}

void StepSimulation::finish(int32_t number) {
  Transfer &transfer = transfers[size_t(number)];
  const double passed = clock.now() - transfer.start;
  for (size_t i = 0; i < transfer.members.size(); ++i) {
    const Member &member = transfer.members[i];
    Rank &rank = ranks[size_t(member.rank)];
    rank.seconds.communicating += passed;
    times[size_t(transfer.part)].seconds += passed * model.simulated[size_t(member.rank)].weight;
    observeRun(member.rank, member.step, member.instruction, transfer.start, RunKind::Transfers);
    if (transfer.seconds <= 0)
      continue;
    rank.active.erase(std::find(rank.active.begin(), rank.active.end(), number));
    for (size_t way : {0, 1})
      rank.loads[size_t(2 * transfer.level) + way] -= !transfer.isMessage || way == i;
    touch(member.rank);
  }
  extend(transfer.path, transfer.part, transfer.seconds, passed);
  Queue &queue = queues[size_t(transfer.queue)];
  queue.active = -1;
  int32_t next = -1;
  if (!queue.waiting.empty()) {
    next = queue.waiting.front();
    queue.waiting.pop_front();
    Transfer &following = transfers[size_t(next)];
    if (following.readyAt < clock.now() || transfer.path > following.path)
      following.path = transfer.path;
  }
  release(number);
  if (next >= 0)
    begin(next);
}

/// All who stand at it go on.
void StepSimulation::release(int32_t number) {
  transfers[size_t(number)].isDone = true;
  std::vector<int32_t> standing;
  standing.swap(transfers[size_t(number)].standing);
  for (int32_t rank : standing) {
    endStanding(rank, transfers[size_t(number)]);
    goOn(rank);
    leave(number);
  }
}

// ---- ranks that carry ---------------------------------------------------------------------------

void StepSimulation::carry(int32_t rank, int32_t number) {
  Transfer &transfer = transfers[size_t(number)];
  if (transfer.isMessage)
    transfer.start = clock.now();
  endStanding(rank, transfer);
  ranks[size_t(rank)].since = clock.now();
  ranks[size_t(rank)].carried = number;
  if (transfer.seconds > 0)
    occupy(rank, transfer.seconds);
  else
    finishCarrying(rank);
}

void StepSimulation::finishCarrying(int32_t rank) {
  Rank &state = ranks[size_t(rank)];
  const int32_t number = state.carried;
  Transfer &transfer = transfers[size_t(number)];
  const double passed = clock.now() - state.since;
  state.carried = -1;
  state.seconds.exposed += passed;
  times[size_t(transfer.part)].exposed += passed * model.simulated[size_t(rank)].weight;
  extend(state.path, transfer.part, transfer.seconds / model.simulated[size_t(rank)].speed, passed);
  for (const Member &member : transfer.members)
    if (transfer.isMessage || member.rank == rank) {
      ranks[size_t(member.rank)].seconds.communicating += passed;
      times[size_t(transfer.part)].seconds += passed * model.simulated[size_t(member.rank)].weight;
      observeRun(member.rank, member.step, member.instruction, state.since, RunKind::Transfers);
    }
  if (transfer.isMessage) {
    transfer.path = state.path;
    release(number);
    goOn(rank); // it waits for its own side later
    return;
  }
  if (transfer.isPosted) {
    goOn(rank);
    leave(number);
    return;
  }
  // The last of them lets all go on.
  if (clock.now() > transfer.readyAt || state.path > transfer.path)
    transfer.path = state.path;
  transfer.readyAt = clock.now();
  stand(rank, number);
  if (--transfer.carrying == 0)
    release(number);
}

} // namespace hpc::cost
