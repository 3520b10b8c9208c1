// The objects that the ranks of one process share if the world has other processes too: the host's World for each
// other, groups and tags for the rest, and one rule of waiting: poll for completion, poll for failures, keep the engine
// going.
#pragma once

#include "runtime/backend/processes/ProcessGroup.h"
#include "runtime/launch/Control.h"

#include <atomic>
#include <map>
#include <mutex>

namespace hpc::processes {

/// The processes of a run, as this one sees them.
struct Processes {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<launch::Control> control;
  int64_t process = 0, count = 1;

  /// Cores for this process: its own, divided among the processes with the same cores; 0 if there are fewer.
  int64_t coresOfEach() const;
};

class ProcessWorld {
public:
  /// Process p holds ranks p*ranksPerProcess and on. `inRankOrder`: see ProcessGroup.
  ProcessWorld(const plan::Plan &plan, Processes &processes, int64_t ranksPerProcess, int64_t threadsPerRank,
               bool inRankOrder);
  ~ProcessWorld();

  /// Whether the engine has enough tags for all messages of the plan.
  Status check() const;
  host::World &local() { return *here; }
  Transport &transport() { return *processes.transport; }
  const std::vector<plan::Axis> &meshAxes() const { return axes; }
  int64_t processOf(int64_t rank) const { return rank / ranksPerProcess; }
  /// Of the messages between two ranks of different processes; -1 when the plan has none.
  int64_t tag(int64_t sender, int64_t receiver, int32_t channel) const;
  /// The most that can have come for a rank of this process from others before its receives are posted.
  int64_t earlyBytes(int64_t rank) const;
  /// The group of a rank, or null where all its members are in this process.
  ProcessGroup *group(const RankPlace &place, const std::vector<std::string> &axes);

  void prepare(ProcessGroup &group, const plan::Collective &collective, int64_t number,
               const host::Reduction &reduction);
  Status post(ProcessGroup &group, const plan::Collective &collective, int64_t number, const host::Reduction &reduction,
              int64_t position, const host::Share &share, host::Request &request);
  /// A rank's transfers with other processes, by request; they live as long as the world.
  std::vector<std::unique_ptr<Transfer>> &makeTransfers(int64_t rank, int64_t count);
  /// Waits for a request of a group, or for a transfer.
  Status wait(host::Request &request);
  Status wait(Transfer &transfer);
  /// Goes on with collectives that are under way, if there are any; between instructions of any rank.
  void progressPosted();

  /// The error to report after an error of the engine: why another process has gone, if one has.
  Status engineFailed(const Status &error);
  void fail(const Status &error);
  Status agree(const Status &mine, bool *answer = nullptr);

private:
  void progress();
  template <typename F> Status waitUntil(F isDone);
  /// All that is under way with other processes. The ranks of this process have ended their step.
  void giveUp();
  Status restart();

  const int64_t ranksPerProcess, ranksPerStage;
  const std::vector<plan::Axis> axes;
  Processes &processes;
  const bool spins;
  std::shared_ptr<host::World> here;
  std::map<host::World::MailboxKey, int64_t> tags;
  std::map<host::World::GroupKey, std::unique_ptr<ProcessGroup>> groups; ///< with members here and elsewhere
  int64_t tagCount = 0;
  const std::map<int64_t, int64_t> early; ///< by rank of this process
  std::map<int64_t, std::vector<std::unique_ptr<Transfer>>> transfers; ///< by rank
  std::atomic<bool> isUnderWay{false}; ///< some collective may be
  std::mutex mutex; ///< of the groups' state, the map above and `placed`
  Status placed;    ///< the first error of a rank of this process when another process was lost, with its place
};

} // namespace hpc::processes
