// The independent checker of schedules. First each stage by itself (once, order, slots), then all stages side by side:
// a message moves once the sender's F and the receiver's R are both posted, and a wait blocks until then.
#include "runtime/plan/Schedule.h"

#include <algorithm>
#include <set>

namespace hpc::plan {

namespace {

Status fault(const std::string &message) { return Status::error(ErrorKind::Plan, message); }

std::string text(const ScheduleAction &action) {
  return std::string(1, action.program) + std::to_string(action.microBatch);
}

/// The state of one stage while its list is read.
struct StageChecker {
  bool receives, sends;
  int64_t microBatches, slots;
  std::set<int32_t> received, forwarded, drained;
  std::vector<int32_t> incoming; ///< by slot: the micro-batch whose input is in it, or -1
  std::vector<int32_t> outgoing; ///< by slot: the micro-batch whose output may be on its way, or -1
  int64_t live = 0, peak = 0;

  StageChecker(bool receives, bool sends, int64_t microBatches, int64_t slots)
      : receives(receives), sends(sends), microBatches(microBatches), slots(slots), incoming(slots, -1),
        outgoing(slots, -1) {}

  Status receive(const ScheduleAction &action) {
    if (!receives)
      return fault("the first stage receives nothing");
    if (!received.insert(action.microBatch).second)
      return fault("is there twice");
    if (incoming[action.slot] >= 0)
      return fault("slot " + std::to_string(action.slot) + " still holds micro-batch " +
                   std::to_string(incoming[action.slot]));
    incoming[action.slot] = action.microBatch;
    peak = std::max(peak, ++live);
    return Status::success();
  }
  Status forward(const ScheduleAction &action) {
    if (!forwarded.insert(action.microBatch).second)
      return fault("is there twice");
    if (receives && incoming[action.slot] != action.microBatch)
      return fault("its input is not in slot " + std::to_string(action.slot) + "; R" +
                   std::to_string(action.microBatch) + " must come first, in the same slot");
    incoming[action.slot] = -1;
    outgoing[action.slot] = action.microBatch; // waits for the slot's last send by itself
    if (!receives)
      peak = std::max<int64_t>(peak, 1);
    live -= receives;
    return Status::success();
  }
  Status drain(const ScheduleAction &action) {
    if (!sends)
      return fault("the last stage has nothing to drain");
    if (outgoing[action.slot] != action.microBatch || !drained.insert(action.microBatch).second)
      return fault("micro-batch " + std::to_string(action.microBatch) + " is not on its way in slot " +
                   std::to_string(action.slot));
    outgoing[action.slot] = -1;
    return Status::success();
  }
  Status apply(const ScheduleAction &action) {
    if (action.microBatch < 0 || action.microBatch >= microBatches || action.slot < 0 || action.slot >= slots)
      return fault("there are " + std::to_string(microBatches) + " micro-batches and " + std::to_string(slots) +
                   " slots");
    switch (action.program) {
    case 'R':
      return receive(action);
    case 'F':
      return forward(action);
    case 'D':
      return drain(action);
    }
    return fault("unknown program; the checker knows R, F and D");
  }
  Status finish() const {
    for (int32_t i = 0; i < microBatches; ++i)
      if (!forwarded.count(i))
        return fault("F" + std::to_string(i) + " is missing");
    for (int32_t microBatch : outgoing)
      if (sends && microBatch >= 0)
        return fault("D" + std::to_string(microBatch) + " is missing: its send is never waited for");
    return Status::success();
  }
};

/// Message i of a link is the i-th that each side posts.
struct Link {
  std::vector<int32_t> sent, received; ///< micro-batches in the order of posting
  bool delivered(int32_t microBatch, const std::vector<int32_t> &mine, const std::vector<int32_t> &other) const {
    size_t position = std::find(mine.begin(), mine.end(), microBatch) - mine.begin();
    return position < mine.size() && position < other.size();
  }
};

/// Runs all stages; `links[s]` is from stage s to s + 1.
Status simulate(const std::vector<StageSchedule> &stages, int64_t slots) {
  std::vector<Link> links(stages.size());
  std::vector<size_t> next(stages.size(), 0);
  std::vector<std::vector<int32_t>> lastSent(stages.size(), std::vector<int32_t>(slots, -1));
  auto sendDone = [&](size_t s, int32_t microBatch) {
    return microBatch < 0 || links[s].delivered(microBatch, links[s].sent, links[s].received);
  };
  auto tryStep = [&](size_t s) {
    const ScheduleAction &action = stages[s][next[s]];
    bool sends = s + 1 < stages.size();
    if (action.program == 'R') {
      links[s - 1].received.push_back(action.microBatch);
    } else {
      if (sends && !sendDone(s, lastSent[s][action.slot]))
        return false;
      if (action.program == 'F') {
        if (s > 0 && !links[s - 1].delivered(action.microBatch, links[s - 1].received, links[s - 1].sent))
          return false;
        if (sends) {
          links[s].sent.push_back(action.microBatch);
          lastSent[s][action.slot] = action.microBatch;
        }
      }
    }
    ++next[s];
    return true;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t s = 0; s < stages.size(); ++s)
      while (next[s] < stages[s].size() && tryStep(s))
        progress = true;
  }
  for (size_t s = 0; s < stages.size(); ++s)
    if (next[s] < stages[s].size())
      return fault("stage " + std::to_string(s) + ": deadlock: " + text(stages[s][next[s]]) + " waits for ever");
  for (size_t s = 0; s + 1 < stages.size(); ++s)
    if (links[s].sent != links[s].received)
      return fault("stage " + std::to_string(s) + " sends micro-batches in another order than stage " +
                   std::to_string(s + 1) + " receives them");
  return Status::success();
}

} // namespace

Expected<ScheduleFacts> checkSchedules(const std::vector<StageSchedule> &stages, int64_t microBatches, int64_t slots) {
  ScheduleFacts facts;
  for (size_t s = 0; s < stages.size(); ++s) {
    StageChecker checker(s > 0, s + 1 < stages.size(), microBatches, slots);
    std::string where = "stage " + std::to_string(s);
    for (const ScheduleAction &action : stages[s])
      HPC_RETURN_IF_ERROR(checker.apply(action).at(where + ": " + text(action)));
    HPC_RETURN_IF_ERROR(checker.finish().at(where));
    facts.peakInFlight.push_back(checker.peak);
  }
  HPC_RETURN_IF_ERROR(simulate(stages, slots));
  return facts;
}

} // namespace hpc::plan
