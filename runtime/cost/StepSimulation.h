// A step with a clock, in the order of time. Each simulated rank walks its schedule; transfers (collectives and messages) begin when
// all of their ranks have come and what is before them in their queue is done, and run beside computation.
//
// Queues are those of the backends: one for the collectives of a group, one for the messages from a rank to another. Ranks that share
// processors (Machine::cores) carry their transfers themselves: members a collective when they wait for it, whoever posts last a message.
#pragma once

#include "runtime/cost/FluidClock.h"
#include "runtime/cost/Predict.h"
#include "runtime/cost/StepModel.h"

#include <deque>
#include <unordered_map>

namespace hpc::cost {

/// Seconds by Part: how the time until something came about.
using Path = std::vector<double>;

/// A simulated rank, and where it started its side of a transfer.
struct Member {
  int32_t rank = 0, step = 0, instruction = 0;
};

/// A collective of a group, or a message.
struct Transfer {
  double seconds = 0;  ///< alone on its link
  double readyAt = -1; ///< when the last of its ranks came
  double start = -1;
  bool isDone = false;
  int32_t part = 0, level = 0, queue = -1;
  int32_t users = 0;              ///< members that have not gone on from it
  int32_t carrying = 0;           ///< members that have yet to carry it
  bool isPosted = false, isMessage = false;
  std::vector<Member> members;   ///< that have come; of a message the sender first
  std::vector<int32_t> standing; ///< simulated ranks that wait for it
  Path path;
};

class StepSimulation {
public:
  StepSimulation(const StepModel &model, const Observer &observe);
  Status run();
  Prediction take();

private:
  struct Rank {
    int32_t step = 0, op = 0;
    double since = 0;      ///< when what it does began
    Work work;             ///< under way
    int32_t carried = -1;  ///< the transfer that it carries
    bool isDirty = false, isFinished = false;
    std::vector<int32_t> active;                   ///< transfers under way
    std::vector<int32_t> loads;                    ///< of each link: transfers that it sends, and that it receives
    std::unordered_map<int64_t, int32_t> requests; ///< (request, slot) -> transfer
    RankSeconds seconds;
    Path path;
  };
  /// Transfers that follow each other.
  struct Queue {
    int32_t active = -1;
    std::deque<int32_t> waiting;
  };
  /// Collectives of a group that not all members have come to, from number `first` on.
  struct Meetings {
    int64_t first = 0;
    std::deque<int32_t> open;
    std::unordered_map<int32_t, int64_t> next; ///< by member
  };
  struct Lane {
    std::deque<int32_t> sends, recvs; ///< unmatched; at most one of the lists is not empty
  };

  /// Actions of the clock.
  void end(size_t activity);

  // Ranks.
  void advance(int32_t rank);
  /// Whether the rank is blocked at the op.
  bool execute(int32_t rank, const TimedOp &op);
  bool compute(int32_t rank);
  bool meet(int32_t rank, const TimedOp &op);
  bool post(int32_t rank, const TimedOp &op);
  bool wait(int32_t rank, const TimedOp &op);
  void finishWork(int32_t rank);
  void stand(int32_t rank, int32_t transfer);
  /// The rank no longer stands: what its time went by.
  void endStanding(int32_t rank, const Transfer &transfer);
  void goOn(int32_t rank);
  /// The rank uses a processor from now on.
  void occupy(int32_t rank, double seconds);
  void vacate(int32_t rank);

  // Transfers.
  int32_t makeTransfer(int32_t rank, const TimedOp &op, int32_t users);
  void join(int32_t transfer, int32_t rank, const TimedOp &op);
  void leave(int32_t transfer);
  void beReady(int32_t transfer);
  void begin(int32_t transfer);
  void finish(int32_t transfer);
  void release(int32_t transfer);
  void carry(int32_t rank, int32_t transfer);
  void finishCarrying(int32_t rank);
  /// Adds what passed to the way to the end of a transfer.
  void extend(Path &path, int32_t part, double seconds, double passed) const;

  // Rates.
  void touch(int32_t rank);
  void settle();
  double computingRate(int32_t rank) const;
  double transferRate(const Transfer &transfer) const;

  const plan::ScheduleStep &stepOf(int32_t rank) const;
  int64_t requestKey(int32_t rank, int64_t request) const;
  bool isCarriedByRanks() const { return model.machine.cores > 0; }
  void observeRun(int32_t rank, int32_t step, int32_t instruction, double start, RunKind kind) const;

  const StepModel &model;
  const Observer &observe;
  FluidClock clock; ///< activities: ranks, then transfers
  std::vector<Rank> ranks;
  std::vector<Transfer> transfers;
  std::vector<int32_t> freeTransfers, dirty;
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<int32_t>> ready; ///< the first rank of them goes on
  std::vector<Queue> queues;
  std::unordered_map<int64_t, int32_t> messageQueues;
  std::vector<Meetings> meetings; ///< by group
  std::unordered_map<uint64_t, Lane> lanes;
  std::unordered_map<int64_t, double> activeOnHost;               ///< ranks that use a processor
  std::unordered_map<int64_t, std::vector<int32_t>> ranksOfHost;  ///< simulated ones
  std::vector<TransferTime> times;                  ///< by Part
  Work worked;                                      ///< by all ranks
  double bytesSent = 0;
};

} // namespace hpc::cost
