// The communicators of NCCL that a plan needs, and their ids: a fixed walk over the plan numbers them alike in all
// processes, and the process of the first member makes the id that the others get. There is one for each group of ranks
// that does collectives together, in the order of its positions, and one for each direction in which a rank sends to
// another. A direction has its own because NCCL runs the calls of one communicator in order: on a common one, two ranks
// that have each posted the receive first would wait for each other.
#pragma once

#include "runtime/backend/cuda/Library.h"
#include "runtime/backend/host/World.h"
#include "runtime/core/ControlPlane.h"

#include <array>
#include <map>

namespace hpc::cuda {

/// The identity of a card; MIG's slices have their own.
using CardId = std::array<char, 16>;

class NcclWorld {
public:
  /// `ranks` of this process; every process holds as many.
  NcclWorld(const Nccl &nccl, const plan::Plan &plan, const host::World &world, RankRange ranks, ControlPlane &plane);

  /// New ids for all communicators: at the start, and after a step that failed. All processes call it. `cards` of this
  /// process's ranks: an error where two ranks have one, which NCCL does not take.
  Status renew(const std::vector<CardId> &cards);
  /// How often renew() was called: a rank that joined for an earlier number has to join again.
  uint64_t generation() const { return made; }
  /// No step can follow one that ended with `why`: its communicators are gone, and there will be no new ones.
  void giveUp(const Status &why) { ending = why; }
  /// Success, or that error.
  const Status &end() const { return ending; }

  size_t size() const { return members.size(); }
  /// Ranks, by position; of messages the sender, then the receiver.
  const std::vector<int64_t> &membersOf(size_t index) const { return members[index]; }
  const NcclId &id(size_t index) const { return ids[index]; }
  /// The number of a communicator, or -1 where none is needed.
  int64_t group(int64_t stage, const std::vector<std::string> &axes, int64_t number) const;
  int64_t messages(int64_t sender, int64_t receiver, int32_t channel) const;

private:
  int64_t processOf(int64_t rank) const { return rank / ranks.count; }
  void addMessages(const plan::Plan &plan, const host::World &world);
  Status checkCards(const std::vector<CardId> &cards) const;

  const Nccl &nccl;
  const RankRange ranks;
  const int64_t worldSize;
  ControlPlane &plane;
  std::vector<std::vector<int64_t>> members;
  std::vector<NcclId> ids;
  std::map<host::World::GroupKey, int64_t> groups;
  std::map<host::World::MailboxKey, int64_t> directions;
  uint64_t made = 0;
  Status ending;
};

} // namespace hpc::cuda
