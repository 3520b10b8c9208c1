// The walk: groups first, then messages, both in the order of host::World's tables.
#include "runtime/backend/cuda/NcclWorld.h"

#include "runtime/core/OutputTransfer.h"
#include "runtime/core/Slice.h"
#include "runtime/plan/Groups.h"

#include <cstdlib>
#include <cstring>
#include <tuple>

namespace hpc::cuda {

namespace {

/// Channels of messages that a rank sends to `peer`, or receives from it, in the order in which it posts them in a
/// step, for each entry: an ordinary step, or one with all outputs.
template <typename Message>
std::vector<int32_t> channelsPosted(const plan::Plan &plan, int64_t rank, int64_t peer, bool all) {
  const int64_t ranksPerStage = plan.ranksPerStage();
  const plan::Stage &stage = plan.stages[size_t(rank / ranksPerStage)];
  std::vector<int32_t> channels;
  auto add = [&](const std::vector<plan::ScheduleStep> &schedule) {
    for (const plan::ScheduleStep &step : schedule) {
      const Place place{rank % ranksPerStage, step.microBatch, ranksPerStage};
      for (const plan::Instruction &instruction : stage.programs[size_t(step.program)].instructions)
        if (const Message *message = std::get_if<Message>(&instruction.action))
          if (place(message->peer) == peer && place(instruction.when) && (all || !instruction.onRequest))
            channels.push_back(message->channel);
    }
  };
  add(stage.schedule);
  for (const plan::Entry &entry : plan.entries)
    add(entry.schedules[size_t(rank / ranksPerStage)]);
  return channels;
}

} // namespace

NcclWorld::NcclWorld(const Nccl &nccl, const plan::Plan &plan, const host::World &world, RankRange ranks,
                     ControlPlane &plane)
    : nccl(nccl), ranks(ranks), worldSize(plan.worldSize()), plane(plane) {
  const int64_t ranksPerStage = plan.ranksPerStage();
  for (const host::World::GroupKey &key : world.groupKeys()) {
    const auto &[stage, over, number] = key;
    std::map<int64_t, int64_t> byPosition;
    for (int64_t c = 0; c < ranksPerStage; ++c)
      if (plan::GroupSeat seat = plan::seatOf(plan.axes, c, over); seat.group == number)
        byPosition[seat.position] = stage * ranksPerStage + c;
    if (byPosition.size() < 2)
      continue;
    groups[key] = int64_t(members.size());
    members.emplace_back();
    for (const auto &[position, rank] : byPosition)
      members.back().push_back(rank);
  }
  addMessages(plan, world);
  ids.resize(members.size());
}

/// NCCL matches messages between two ranks by their order alone. Channels share a communicator where both ends post
/// them in one order.
void NcclWorld::addMessages(const plan::Plan &plan, const host::World &world) {
  std::map<std::pair<int64_t, int64_t>, std::vector<int32_t>> channels;
  for (const auto &[sender, receiver, channel] : world.mailboxKeys())
    // Each pair costs a communicator, so saved tensors that are cut over processes go to rank 0 (Backend::reachesOwners).
    if (sender != receiver && (channel != outputChannel || (receiver == 0 && processOf(sender) != processOf(receiver))))
      channels[{sender, receiver}].push_back(channel);
  for (const auto &[pair, list] : channels) {
    const auto &[sender, receiver] = pair;
    auto isOneOrderOf = [&, sender = sender, receiver = receiver](bool all) {
      return channelsPosted<plan::Send>(plan, sender, receiver, all) ==
             channelsPosted<plan::Recv>(plan, receiver, sender, all);
    };
    const bool isOneOrder = isOneOrderOf(false) && isOneOrderOf(true);
    for (size_t i = 0; i < list.size(); ++i) {
      if (i == 0 || !isOneOrder)
        members.push_back({sender, receiver});
      directions[{sender, receiver, list[i]}] = int64_t(members.size()) - 1;
    }
  }
}

int64_t NcclWorld::group(int64_t stage, const std::vector<std::string> &axes, int64_t number) const {
  auto found = groups.find({stage, axes, number});
  return found == groups.end() ? -1 : found->second;
}

int64_t NcclWorld::messages(int64_t sender, int64_t receiver, int32_t channel) const {
  auto found = directions.find({sender, receiver, channel});
  return found == directions.end() ? -1 : found->second;
}

Status NcclWorld::checkCards(const std::vector<CardId> &cards) const {
  // A name of its own for each process makes NCCL take them for hosts, which is how one card can try it.
  if (std::getenv("NCCL_HOSTID"))
    return Status::success();
  for (size_t rank = 0; rank < cards.size(); ++rank)
    for (size_t other = 0; other < rank; ++other)
      if (cards[rank] == cards[other])
        return Status::error(ErrorKind::Usage,
                             "ranks " + std::to_string(other) + " and " + std::to_string(rank) +
                                 " of different processes have one GPU, and NCCL wants one for each rank; start one "
                                 "process with --ranks-per-gpu=" +
                                 std::to_string(worldSize) + ", or use as many GPUs as ranks");
  return Status::success();
}

Status NcclWorld::renew(const std::vector<CardId> &cards) {
  std::string mine;
  for (const CardId &card : cards)
    mine.append(card.data(), card.size());
  for (const std::vector<int64_t> &ranksOfOne : members)
    if (ranks.holds(ranksOfOne[0])) {
      NcclId id;
      HPC_RETURN_IF_ERROR(check(nccl, nccl.getUniqueId(&id), "making a communicator's id"));
      mine.append(id.bytes, sizeof(id.bytes));
    }
  Expected<std::vector<std::string>> texts = plane.exchange(mine);
  if (!texts.ok())
    return texts.status();
  std::vector<size_t> read(texts->size(), 0);
  auto take = [&](int64_t rank, char *target, size_t bytes) {
    const size_t process = size_t(processOf(rank));
    if (process >= texts->size() || (*texts)[process].size() - read[process] < bytes)
      return false;
    std::memcpy(target, (*texts)[process].data() + read[process], bytes);
    read[process] += bytes;
    return true;
  };
  std::vector<CardId> all(static_cast<size_t>(worldSize));
  bool complete = true;
  for (int64_t rank = 0; rank < worldSize; ++rank)
    complete = complete && take(rank, all[size_t(rank)].data(), sizeof(CardId));
  for (size_t i = 0; i < members.size(); ++i)
    complete = complete && take(members[i][0], ids[i].bytes, sizeof(NcclId));
  if (!complete)
    return Status::error(ErrorKind::Io, "a process has sent fewer ids of NCCL than the plan has communicators; run the "
                                        "same version of this program everywhere");
  ++made;
  return checkCards(all);
}

} // namespace hpc::cuda
