// What the ranks of a session share to talk to each other: groups, mailboxes and requests, all made before the first
// run.
#pragma once

#include "runtime/core/Backend.h"

#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace hpc::host {

/// Ranks that do collectives together, in the order of their positions.
struct Group {
  /// What a rank shows the others during a collective.
  struct Member {
    const plan::Collective *collective = nullptr;
    const std::byte *source = nullptr;
    std::byte *target = nullptr;
  };
  Group(Rendezvous &rendezvous, int size) : barrier(rendezvous, size), members(size_t(size)) {}

  int64_t size() const { return int64_t(members.size()); }

  Barrier barrier;
  std::vector<Member> members; ///< by position
};

/// A rank's seat in a group.
struct Seat {
  Group *group = nullptr;
  int64_t position = 0;
};

class World {
public:
  World(const plan::Plan &plan, Rendezvous &rendezvous);

  /// The seat of a rank in its group over `axes`, or an error for an axis that the plan lacks.
  Expected<Seat> seat(const RankPlace &place, const std::vector<std::string> &axes);
  /// Null when the plan has no such messages.
  Mailbox *mailbox(int64_t sender, int64_t receiver, int32_t channel);
  Request &request(int64_t rank, int64_t index) { return *requests[size_t(rank)][size_t(index)]; }

  /// Forgets what a failed run left behind.
  void reset();

private:
  using MailboxKey = std::tuple<int64_t, int64_t, int32_t>; ///< sender, receiver, channel
  /// stage, axes as listed, number of the group within the stage
  using GroupKey = std::tuple<int64_t, std::vector<std::string>, int64_t>;

  void addMailboxes(const plan::Stage &stage, int64_t stageIndex);
  void addGroups(const plan::Stage &stage, int64_t stageIndex);

  const plan::Plan &plan;
  Rendezvous &rendezvous;
  std::map<GroupKey, std::unique_ptr<Group>> groups;
  std::map<MailboxKey, std::unique_ptr<Mailbox>> mailboxes;
  std::vector<std::vector<std::unique_ptr<Request>>> requests; ///< by rank
};

} // namespace hpc::host
