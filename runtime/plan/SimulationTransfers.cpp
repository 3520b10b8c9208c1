// Messages and data in the simulation: posting, matching and waiting, and what each buffer holds. The i-th
// send from a rank to another on a channel meets the i-th receive; neither is complete before the other is posted.
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanFault.h"
#include "runtime/plan/Simulation.h"

#include <algorithm>

namespace hpc::plan {

namespace {

/// maxRanks and maxChannel (PlanStructure.h) leave 64 bits enough.
uint64_t laneKey(int64_t sender, int64_t receiver, int64_t channel) {
  return (uint64_t(sender) << 38) | (uint64_t(receiver) << 21) | uint64_t(channel);
}

int64_t requestKey(int64_t request, int64_t slot) { return (request << 20) + slot; }

bool intersect(const TrackedUse &a, const TrackedUse &b) { return a.begin < b.end && b.begin < a.end; }

} // namespace

int32_t Simulation::stateIndex(int32_t rank, const TrackedUse &use, int32_t microBatch) const {
  const TrackedBuffer &tracked = streams[stageOf(rank)].tracked[use.tracked];
  return tracked.firstState + microBatch % tracked.slots;
}

int32_t Simulation::slotOf(int32_t rank, int32_t request) const {
  return stepOf(rank).microBatch % plan.stages[stageOf(rank)].requests[request];
}

/// A rank's own use of a tracked buffer: not in flight, and with the content that the program needs.
Status Simulation::use(int32_t rank, const StreamOp &op, const TrackedUse &use) {
  if (!isOn(rank, use.when))
    return Status::success();
  RankState &state = states[rank];
  const Stage &stage = plan.stages[stageOf(rank)];
  const TrackedBuffer &tracked = streams[stageOf(rank)].tracked[use.tracked];
  int32_t microBatch = stepOf(rank).microBatch, index = stateIndex(rank, use, microBatch);
  for (int32_t id : state.flights)
    for (const TrackedUse &flying : *posts[id].uses) {
      if (flying.tracked != use.tracked || !intersect(flying, use) || (!flying.write && !use.write) ||
          stateIndex(rank, flying, posts[id].microBatch) != index)
        continue;
      return fault(siteText(siteOf(rank, op)) + ": " + (use.write ? "writes to " : "reads ") +
                   bufferText(stage, tracked.buffer) + " while it is in flight: request " +
                   std::to_string(posts[id].request) + ", posted by " + siteText(posts[id].site) +
                   "; wait for it first");
    }
  if (use.write) {
    state.holds[index] = microBatch;
    return Status::success();
  }
  int32_t held = state.holds[index];
  bool good =
      tracked.content == Content::Any || (tracked.content == Content::Written && held >= 0) || held == microBatch;
  if (good)
    return Status::success();
  std::string slot = tracked.slots > 1 ? " in slot " + std::to_string(microBatch % tracked.slots) : "";
  std::string content = held < 0 ? "nothing yet" : "data of micro-batch " + std::to_string(held);
  return fault(
      siteText(siteOf(rank, op)) + ": reads " + bufferText(stage, tracked.buffer) + slot + ", which holds " + content +
      (tracked.content == Content::Written ? "; a program must write it before"
                                           : ", for micro-batch " + std::to_string(microBatch) +
                                                 "; what writes it must run before, and its slots must be enough"));
}

Expected<int32_t> Simulation::launch(int32_t rank, const StreamOp &op, Post post) {
  RankState &state = states[rank];
  post.site = siteOf(rank, op);
  post.kind = op.kind;
  post.slot = slotOf(rank, post.request);
  post.microBatch = stepOf(rank).microBatch;
  post.clock = state.clock;
  post.uses = &op.uses;
  for (const TrackedUse &one : op.uses)
    HPC_RETURN_IF_ERROR(use(rank, op, one));
  for (const TrackedUse &one : op.uses)
    if (one.write)
      state.holds[stateIndex(rank, one, post.microBatch)] = -1; // until it is waited for
  const int32_t id = freePosts.empty() ? int32_t(posts.size()) : freePosts.back();
  auto [open, isNew] = state.requests.emplace(requestKey(post.request, post.slot), id);
  if (!isNew)
    return fault(siteText(post.site) + ": posts request " + std::to_string(post.request) + " in slot " +
                 std::to_string(post.slot) + " again before a wait on the one of " +
                 siteText(posts[open->second].site));
  state.flights.push_back(id);
  if (freePosts.empty()) {
    posts.push_back(post);
  } else {
    freePosts.pop_back();
    posts[id] = post;
  }
  return id;
}

Status Simulation::post(int32_t rank, const StreamOp &op) {
  const Action &action = instructionAt(siteOf(rank, op)).action;
  Post post;
  auto take = [&](const auto &transfer) {
    post.peer = int32_t(transfer.peer.at(rank % ranks, stepOf(rank).microBatch, ranks));
    post.channel = transfer.channel;
    post.request = transfer.request;
    post.bytes = transfer.bytes;
  };
  bool isSend = op.kind == OpKind::Send;
  if (isSend)
    take(std::get<Send>(action));
  else
    take(std::get<Recv>(action));
  if (post.peer < 0)
    return Status::success();
  if (post.peer == rank)
    return fault(siteText(siteOf(rank, op)) + ": the peer is the rank itself; use a copy");
  int32_t peer = post.peer, channel = post.channel;
  Expected<int32_t> launched = launch(rank, op, post);
  if (!launched.ok())
    return launched.status();
  int32_t id = *launched;

  Lane &lane = lanes[isSend ? laneKey(rank, peer, channel) : laneKey(peer, rank, channel)];
  std::deque<int32_t> &mine = isSend ? lane.sends : lane.recvs, &others = isSend ? lane.recvs : lane.sends;
  if (others.empty()) {
    mine.push_back(id);
    return Status::success();
  }
  int32_t other = others.front();
  others.pop_front();
  return isSend ? match(id, other) : match(other, id);
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
  auto found = state.requests.find(requestKey(request, slotOf(rank, int32_t(request))));
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
  for (const TrackedUse &flying : *post.uses)
    if (flying.write)
      state.holds[stateIndex(rank, flying, post.microBatch)] = post.microBatch;
  state.requests.erase(found);
  state.flights.erase(std::find(state.flights.begin(), state.flights.end(), id));
  freePosts.push_back(id);
  return Status::success();
}

} // namespace hpc::plan
