// Messages and data in the simulation: posting, matching and waiting, and whose micro-batch each buffer holds. The i-th
// send from a rank to another on a channel meets the i-th receive; neither is complete before the other is posted.
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/Simulation.h"

#include <algorithm>

namespace hpc::plan {

namespace {

Status fault(const std::string &message) { return Status::error(ErrorKind::Plan, message); }

/// maxRanks and maxChannel (PlanStructure.h) leave 64 bits enough.
uint64_t laneKey(int64_t sender, int64_t receiver, int64_t channel) {
  return (uint64_t(sender) << 38) | (uint64_t(receiver) << 21) | uint64_t(channel);
}

int64_t requestKey(int64_t request, int64_t slot) { return (request << 20) + slot; }

bool intersect(const TrackedUse &a, const TrackedUse &b) { return a.begin < b.end && b.begin < a.end; }

} // namespace

int32_t Simulation::stateIndex(int32_t rank, const TrackedUse &use) const {
  const TrackedBuffer &tracked = streams[stageOf(rank)].tracked[use.tracked];
  return tracked.firstState + (tracked.perSlot ? stepOf(rank).slot : 0);
}

/// A rank's own use of a tracked buffer: not in flight, and of the micro-batch that the program works on.
Status Simulation::use(int32_t rank, const StreamOp &op, const TrackedUse &use) {
  RankState &state = states[rank];
  const Stage &stage = plan.stages[stageOf(rank)];
  const TrackedBuffer &tracked = streams[stageOf(rank)].tracked[use.tracked];
  int32_t index = stateIndex(rank, use), microBatch = stepOf(rank).microBatch;
  for (int32_t id : state.flights) {
    const Post &post = posts[id];
    if (post.state != index || !intersect(post.use, use) || (post.isSend && !use.write))
      continue;
    return fault(siteText(siteOf(rank, op)) + ": " + (use.write ? "writes to " : "reads ") +
                 bufferText(stage, tracked.buffer) + " while it is in flight: request " + std::to_string(post.request) +
                 ", posted by " + siteText(post.site) + "; wait for it first");
  }
  if (use.write) {
    state.holds[index] = microBatch;
    return Status::success();
  }
  if (!tracked.perSlot || state.holds[index] == microBatch)
    return Status::success();
  std::string content =
      state.holds[index] < 0 ? "nothing yet" : "data of micro-batch " + std::to_string(state.holds[index]);
  return fault(siteText(siteOf(rank, op)) + ": reads " + bufferText(stage, tracked.buffer) + " in slot " +
               std::to_string(stepOf(rank).slot) + ", which holds " + content + ", for micro-batch " +
               std::to_string(microBatch) + "; its receive and its forward must have the same slot");
}

Status Simulation::post(int32_t rank, const StreamOp &op) {
  RankState &state = states[rank];
  const ScheduleStep &step = stepOf(rank);
  const Action &action = instructionAt(siteOf(rank, op)).action;
  Post post;
  post.site = siteOf(rank, op);
  post.isSend = op.kind == OpKind::Send;
  auto take = [&](const auto &transfer) {
    post.peer = int32_t(transfer.peer.at(rank % ranks, step.microBatch, ranks));
    post.channel = transfer.channel;
    post.request = transfer.request;
    post.bytes = transfer.bytes;
  };
  if (post.isSend)
    take(std::get<Send>(action));
  else
    take(std::get<Recv>(action));
  if (post.peer < 0)
    return Status::success();
  if (post.peer == rank)
    return fault(siteText(post.site) + ": the peer is the rank itself; use a copy");
  post.slot = step.slot;
  post.microBatch = step.microBatch;
  post.clock = state.clock;
  if (!op.uses.empty()) {
    HPC_RETURN_IF_ERROR(use(rank, op, op.uses[0]));
    post.use = op.uses[0];
    post.state = stateIndex(rank, post.use);
    if (!post.isSend)
      state.holds[post.state] = -1;
  }
  int32_t id = int32_t(posts.size());
  auto [open, isNew] = state.requests.emplace(requestKey(post.request, post.slot), id);
  if (!isNew)
    return fault(siteText(post.site) + ": posts request " + std::to_string(post.request) + " in slot " +
                 std::to_string(post.slot) + " again before a wait on the one of " +
                 siteText(posts[open->second].site));
  state.flights.push_back(id);
  posts.push_back(post);

  Lane &lane = lanes[post.isSend ? laneKey(rank, post.peer, post.channel) : laneKey(post.peer, rank, post.channel)];
  std::deque<int32_t> &mine = post.isSend ? lane.sends : lane.recvs, &others = post.isSend ? lane.recvs : lane.sends;
  if (others.empty()) {
    mine.push_back(id);
    return Status::success();
  }
  int32_t other = others.front();
  others.pop_front();
  return post.isSend ? match(id, other) : match(other, id);
}

Status Simulation::match(int32_t sendId, int32_t recvId) {
  Post &send = posts[sendId], &recv = posts[recvId];
  if (send.bytes != recv.bytes)
    return fault(siteText(send.site) + " sends " + std::to_string(send.bytes) +
                 " bytes, but the receive that it meets, " + siteText(recv.site) + ", expects " +
                 std::to_string(recv.bytes));
  if (send.microBatch != recv.microBatch)
    return fault(siteText(send.site) + " sends data of micro-batch " + std::to_string(send.microBatch) +
                 ", but the receive that it meets, " + siteText(recv.site) + ", is for micro-batch " +
                 std::to_string(recv.microBatch) + "; both stages must take the micro-batches in one order");
  int64_t clock = std::max(send.clock, recv.clock);
  for (Post *post : {&send, &recv}) {
    post->clock = clock;
    post->complete = true;
    if (!post->waitedFor)
      continue;
    states[post->site.rank].blockedPost = -1;
    runnable.push_back(post->site.rank);
  }
  return Status::success();
}

Status Simulation::wait(int32_t rank, const StreamOp &op, bool &blocked) {
  RankState &state = states[rank];
  int64_t request = std::get<Wait>(instructionAt(siteOf(rank, op)).action).request;
  auto found = state.requests.find(requestKey(request, stepOf(rank).slot));
  if (found == state.requests.end())
    return Status::success();
  int32_t id = found->second;
  Post &post = posts[id];
  if (!post.complete) {
    post.waitedFor = true;
    state.blockedPost = id;
    blocked = true;
    return Status::success();
  }
  state.clock = std::max(state.clock, post.clock);
  if (!post.isSend && post.state >= 0)
    state.holds[post.state] = post.microBatch;
  state.requests.erase(found);
  state.flights.erase(std::find(state.flights.begin(), state.flights.end(), id));
  return Status::success();
}

} // namespace hpc::plan
