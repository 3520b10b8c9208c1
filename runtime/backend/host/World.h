// The objects through which all ranks of a plan communicate as threads of this process: groups, mailboxes, requests,
// and the agreement of sessions that each hold a part of the ranks. One session alone, or several joined by one World,
// are the same to the ranks.
#pragma once

#include "runtime/backend/host/PostedCollective.h"
#include "runtime/core/Backend.h"

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

namespace hpc::host {

/// Ranks that do collectives together, in the order of their positions.
struct Group {
  Group(Rendezvous &rendezvous, int size) : barrier(rendezvous, size), shares(size_t(size)), numbers(size_t(size)) {}

  int64_t size() const { return int64_t(shares.size()); }
  PostedQueue &posted(int64_t number);

  Barrier barrier;
  std::vector<Share> shares;    ///< by position
  std::vector<int64_t> numbers; ///< by position: which of its stage's collectives the rank is in
  std::mutex mutex;
  std::map<int64_t, std::unique_ptr<PostedQueue>> queues; ///< by number of the collective
};

/// A rank's seat in a group.
struct Seat {
  Group *group = nullptr;
  int64_t position = 0;
};

class World {
public:
  /// `spin`: a waiting thread polls a few thousand times before it sleeps; good if each thread has a core.
  World(const plan::Plan &plan, bool spin);
  /// All ranks of the plan on this machine, each with one thread.
  explicit World(const plan::Plan &plan);

  bool spins() const { return rendezvous.spins(); }

  /// The seat of a rank in its group over `axes`, or an error for an axis that the plan lacks.
  Expected<Seat> seat(const RankPlace &place, const std::vector<std::string> &axes);
  /// Null when the plan has no such messages.
  Mailbox *mailbox(int64_t sender, int64_t receiver, int32_t channel);
  /// The requests of a rank; they live as long as the world.
  std::vector<std::unique_ptr<Request>> &makeRequests(int64_t rank, int64_t count);

  /// A session joins with its ranks, which no other may hold, and leaves; later waits for its ranks are errors.
  Status join(RankRange ranks);
  void leave(RankRange ranks);
  void fail(const Status &error) { rendezvous.fail(error); }
  bool failed() const { return rendezvous.failed(); }
  /// Success, or the error with which the waits of all ranks end.
  Status status() const { return rendezvous.status(); }
  /// Forgets the state of a failed run. No rank may be in it.
  void restart();
  /// After a failure `forget` resets another object's state of the ranks' exchanges, together with the world's own.
  void onReset(std::function<void()> forget) { alsoReset = std::move(forget); }
  /// See Backend::agree.
  Status agree(RankRange ranks, const Status &mine, bool *answer = nullptr);

  using MailboxKey = std::tuple<int64_t, int64_t, int32_t>; ///< sender, receiver, channel
  /// stage, axes as listed, number of the group within the stage
  using GroupKey = std::tuple<int64_t, std::vector<std::string>, int64_t>;
  /// All that the plan can name, in an order that is the same in every process.
  std::vector<MailboxKey> mailboxKeys() const;
  std::vector<GroupKey> groupKeys() const;

private:
  void addMailbox(int64_t sender, int64_t receiver, int32_t channel);
  void addMailboxes(const plan::Stage &stage, int64_t stageIndex);
  void addGroups(const plan::Stage &stage, int64_t stageIndex);
  /// The statuses of the sessions at the end of one step. Waiting sessions keep it while others begin the next step.
  struct Round {
    std::map<int64_t, Status> given; ///< by first rank
    int64_t ranks = 0;               ///< whose status `given` has
    bool anyYes = false;             ///< of the answers
    std::optional<Status> verdict;
  };
  void conclude();

  const std::vector<plan::Axis> axes;
  const int64_t ranksPerStage, worldSize;
  Rendezvous rendezvous;
  std::function<void()> alsoReset;
  std::map<GroupKey, std::unique_ptr<Group>> groups;
  std::map<MailboxKey, std::unique_ptr<Mailbox>> mailboxes;
  std::vector<std::vector<std::unique_ptr<Request>>> requests; ///< by rank

  std::mutex mutex; ///< of all below
  std::condition_variable concluded;
  std::vector<RankRange> joined;
  std::shared_ptr<Round> round = std::make_shared<Round>();
  Status gone; ///< why there cannot be another round
};

} // namespace hpc::host
