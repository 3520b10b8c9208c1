// The state of the rendezvous simulation: all ranks' cursors, the messages between them, the collectives that wait for
// members. A rank runs until it blocks; what unblocks it puts it back on the list of ranks that can run. No time passes
// but a logical clock (one unit per run of a program that computes), which gives the picture of the pipeline.
// Where all ranks of a stage do the same, one of them stands for all.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/Streams.h"

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpc::plan {

/// Where a rank is, for messages.
struct Site {
  int32_t rank = 0, step = 0, instruction = 0;
};

/// A posted send, receive or collective, until its wait.
struct Post {
  Site site;
  OpKind kind = OpKind::Send;
  int32_t peer = 0, channel = 0, request = 0, slot = 0, microBatch = 0;
  int64_t bytes = 0;
  const std::vector<TrackedUse> *uses = nullptr; ///< of copies for `microBatch`; they last until the wait
  int64_t clock = 0; ///< when it was posted; when both sides were, once complete
  bool complete = false;
  bool waitedFor = false; ///< its rank is blocked on it
};

/// Unmatched posts from one rank to another on one channel, the oldest first. At most one of the lists is not empty.
struct Lane {
  std::deque<int32_t> sends, recvs;
};

/// A group that waits for its members to arrive at a collective.
struct Meeting {
  Site first;
  std::vector<int32_t> members; ///< ranks that have arrived
};

struct RankState {
  int32_t step = 0, op = 0;
  int64_t clock = 0;
  int32_t blockedPost = -1;                      ///< waits for this post
  int64_t blockedMeeting = -1;                   ///< waits at this collective
  std::vector<int32_t> holds;                    ///< by tracked copy: the micro-batch whose data it has, or -1
  std::vector<int32_t> flights;                  ///< posts not waited for
  std::unordered_map<int64_t, int32_t> requests; ///< (request, slot) -> post not waited for
};

class Simulation {
public:
  enum class Ranks { All, OneOfAlike };
  /// OneOfAlike: the first rank of each stage stands for all of them, where they do the same.
  explicit Simulation(const Plan &plan, Ranks simulated = Ranks::All);
  Status run();
  bool isOfAll() const { return !standsForAll; }
  Timeline takeTimeline() { return std::move(timeline); }
  /// The most posts that were without their wait at once.
  size_t mostPosts() const { return posts.size(); }

private:
  bool areAlike() const;
  Status checkRuns(int64_t stage) const;
  Status checkUpdateIsLast(int64_t stage) const;
  Status advance(int32_t rank);
  Status execute(int32_t rank, const StreamOp &op, bool &blocked);
  Status post(int32_t rank, const StreamOp &op);
  /// Notes a post under its request, and that its buffers are in flight from now on. Returns its number.
  Expected<int32_t> launch(int32_t rank, const StreamOp &op, Post post);
  Status match(int32_t sendId, int32_t recvId);
  Status wait(int32_t rank, const StreamOp &op, bool &blocked);
  Status meet(int32_t rank, const StreamOp &op, bool &blocked);
  Status use(int32_t rank, const StreamOp &op, const TrackedUse &use);
  Status finish(int32_t rank) const;
  Status deadlock() const;

  int64_t stageOf(int32_t rank) const { return rank / ranks; }
  const ScheduleStep &stepOf(int32_t rank) const;
  Site siteOf(int32_t rank, const StreamOp &op) const { return {rank, states[rank].step, op.instruction}; }
  int32_t stateIndex(int32_t rank, const TrackedUse &use, int32_t microBatch) const;
  int32_t slotOf(int32_t rank, int32_t request) const;
  bool isOn(int32_t rank, const ByCoord *when) const {
    return !when || when->at(rank % ranks, stepOf(rank).microBatch, ranks);
  }
  const Instruction &instructionAt(const Site &site) const;
  std::string siteText(const Site &site) const;
  std::string waitText(int32_t rank) const;

  const Plan &plan;
  int64_t ranks; ///< per stage
  bool standsForAll = false; ///< the first rank of each stage
  std::vector<StageStreams> streams;
  std::vector<RankState> states;
  std::vector<int32_t> runnable;
  std::vector<Post> posts;
  std::vector<int32_t> freePosts; ///< of `posts`: waited for, so their places are taken again
  std::unordered_map<uint64_t, Lane> lanes;
  std::unordered_map<int64_t, Meeting> meetings;
  Timeline timeline;
};

} // namespace hpc::plan
