// Walks the plan once and makes a group for every collective and a mailbox for every message that it can name.
#include "runtime/backend/host/World.h"

#include "runtime/base/Cores.h"
#include "runtime/core/OutputTransfer.h"
#include "runtime/core/SavedTensors.h"
#include "runtime/plan/Groups.h"

#include <algorithm>
#include <set>

namespace hpc::host {

namespace {

template <typename T, typename F> void eachAction(const plan::Stage &stage, F f) {
  for (const plan::Program &program : stage.programs)
    for (const plan::Instruction &instruction : program.instructions)
      if (const T *action = std::get_if<T>(&instruction.action))
        f(*action);
}

std::string text(RankRange ranks) {
  return "ranks " + std::to_string(ranks.first) + " to " + std::to_string(ranks.first + ranks.count - 1);
}

} // namespace

PostedQueue &Group::posted(int64_t number) {
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<PostedQueue> &queue = queues[number];
  if (!queue)
    queue = std::make_unique<PostedQueue>(size());
  return *queue;
}

World::World(const plan::Plan &plan)
    : World(plan, plan.worldSize() <= availableCores()) {}

World::World(const plan::Plan &plan, bool spin)
    : axes(plan.axes), ranksPerStage(plan.ranksPerStage()), worldSize(plan.worldSize()), rendezvous(spin) {
  requests.resize(size_t(worldSize));
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    addMailboxes(plan.stages[s], int64_t(s));
    addGroups(plan.stages[s], int64_t(s));
  }
  // Saved tensors go to their owners, or all to rank 0 (Session::read).
  for (const SavedTensor &tensor : savedTensors(plan))
    for (const SavedTensor::Piece &piece : tensor.pieces)
      for (int64_t target : {int64_t(0), tensor.owner})
        addMailbox(piece.sourceFor(target), target, outputChannel);
}

void World::addMailbox(int64_t sender, int64_t receiver, int32_t channel) {
  std::unique_ptr<Mailbox> &mailbox = mailboxes[{sender, receiver, channel}];
  if (!mailbox)
    mailbox = std::make_unique<Mailbox>();
}

void World::addMailboxes(const plan::Stage &stage, int64_t stageIndex) {
  // Many instructions have the same peers; each table is looked through once.
  std::set<std::tuple<std::vector<int64_t>, int32_t, bool>> seen;
  auto addAll = [&](const plan::ByCoord &peers, int32_t channel, bool isSend) {
    if (!seen.insert({peers.values, channel, isSend}).second)
      return;
    for (int64_t entry = 0; entry < std::max(ranksPerStage, int64_t(peers.values.size())); ++entry) {
      int64_t rank = stageIndex * ranksPerStage + entry % ranksPerStage;
      int64_t peer = peers.at(entry % ranksPerStage, entry / ranksPerStage, ranksPerStage);
      if (peer >= 0)
        isSend ? addMailbox(rank, peer, channel) : addMailbox(peer, rank, channel);
    }
  };
  eachAction<plan::Send>(stage, [&](const plan::Send &send) { addAll(send.peer, send.channel, true); });
  eachAction<plan::Recv>(stage, [&](const plan::Recv &recv) { addAll(recv.peer, recv.channel, false); });
  eachAction<plan::StoreOutput>(stage, [&](const plan::StoreOutput &) { addAll(0, outputChannel, true); });
}

void World::addGroups(const plan::Stage &stage, int64_t stageIndex) {
  std::set<std::vector<std::string>> seen;
  eachAction<plan::Collective>(stage, [&](const plan::Collective &collective) {
    if (!seen.insert(collective.axes).second)
      return;
    for (int64_t c = 0; c < ranksPerStage; ++c) {
      plan::GroupSeat seat = plan::seatOf(axes, c, collective.axes);
      std::unique_ptr<Group> &group = groups[{stageIndex, collective.axes, seat.group}];
      if (!group)
        group = std::make_unique<Group>(rendezvous, int(seat.size));
    }
  });
}

Expected<Seat> World::seat(const RankPlace &place, const std::vector<std::string> &over) {
  for (const std::string &used : over)
    if (std::none_of(axes.begin(), axes.end(), [&](const plan::Axis &axis) { return axis.name == used; }))
      return Status::error(ErrorKind::Plan, "a collective goes over axis '" + used + "', which the plan does not have");
  plan::GroupSeat found = plan::seatOf(axes, place.coordinate, over);
  auto group = groups.find({place.stage, over, found.group});
  if (group == groups.end())
    return Status::error(ErrorKind::Internal, "a collective that is not in the plan");
  return Seat{group->second.get(), found.position};
}

Mailbox *World::mailbox(int64_t sender, int64_t receiver, int32_t channel) {
  auto found = mailboxes.find({sender, receiver, channel});
  return found == mailboxes.end() ? nullptr : found->second.get();
}

template <typename Map> static std::vector<typename Map::key_type> keysOf(const Map &map) {
  std::vector<typename Map::key_type> keys;
  for (const auto &[key, value] : map)
    keys.push_back(key);
  return keys;
}
std::vector<World::MailboxKey> World::mailboxKeys() const { return keysOf(mailboxes); }
std::vector<World::GroupKey> World::groupKeys() const { return keysOf(groups); }

std::vector<std::unique_ptr<Request>> &World::makeRequests(int64_t rank, int64_t count) {
  std::vector<std::unique_ptr<Request>> &list = requests[size_t(rank)];
  while (int64_t(list.size()) < count)
    list.push_back(std::make_unique<Request>(rendezvous));
  return list;
}

void World::restart() {
  rendezvous.reset();
  if (alsoReset)
    alsoReset();
  for (auto &[key, group] : groups) {
    group->barrier.reset();
    for (auto &[number, queue] : group->queues)
      queue->reset();
  }
  for (auto &[key, mailbox] : mailboxes)
    mailbox->reset();
  for (auto &list : requests)
    for (std::unique_ptr<Request> &request : list)
      request->reset();
}

Status World::join(RankRange ranks) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const RankRange &other : joined)
    if (ranks.first < other.first + other.count && other.first < ranks.first + ranks.count)
      return Status::error(ErrorKind::Usage, "two sessions hold the same ranks: " + text(ranks) + " and " +
                                                 text(other) + "; each rank belongs to one");
  joined.push_back(ranks);
  return Status::success();
}

void World::leave(RankRange ranks) {
  std::lock_guard<std::mutex> lock(mutex);
  gone = Status::error(ErrorKind::Io, "the session with " + text(ranks) + " has ended; the others cannot go on alone");
  rendezvous.fail(gone);
  if (!round->given.empty())
    conclude();
}

/// All have given their status, or some never will.
void World::conclude() {
  Status verdict = rendezvous.status();
  for (const auto &[first, status] : round->given)
    if (verdict.ok())
      verdict = status;
  if (!verdict.ok() && gone.ok())
    restart();
  round->verdict = verdict;
  round = std::make_shared<Round>();
  concluded.notify_all();
}

Status World::agree(RankRange ranks, const Status &mine, bool *answer) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!gone.ok())
    return rendezvous.status();
  std::shared_ptr<Round> current = round;
  current->given[ranks.first] = mine;
  current->anyYes |= answer && *answer;
  current->ranks += ranks.count;
  if (current->ranks == worldSize)
    conclude();
  concluded.wait(lock, [&] { return current->verdict.has_value(); });
  if (answer)
    *answer = current->anyYes;
  return *current->verdict;
}

} // namespace hpc::host
