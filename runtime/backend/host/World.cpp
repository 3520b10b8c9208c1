// Walks the plan once and makes a group for every collective and a mailbox for every message that it can name.
#include "runtime/backend/host/World.h"

#include <algorithm>

namespace hpc::host {

namespace {

/// A coordinate within a stage, seen from a list of axes: its position in the group, and which of the groups it is.
struct GroupPlace {
  int64_t number = 0, position = 0, size = 1;
};

GroupPlace groupPlace(const plan::Plan &plan, int64_t coordinate, const std::vector<std::string> &axes) {
  std::vector<int64_t> digits(plan.axes.size());
  for (size_t a = digits.size(); a-- > 0;) {
    digits[a] = coordinate % plan.axes[a].size;
    coordinate /= plan.axes[a].size;
  }
  GroupPlace place;
  for (const std::string &used : axes) // in the order in which they are listed
    for (size_t a = 0; a < digits.size(); ++a)
      if (plan.axes[a].name == used) {
        place.position = place.position * plan.axes[a].size + digits[a];
        place.size *= plan.axes[a].size;
      }
  for (size_t a = 0; a < digits.size(); ++a)
    if (std::find(axes.begin(), axes.end(), plan.axes[a].name) == axes.end())
      place.number = place.number * plan.axes[a].size + digits[a];
  return place;
}

template <typename T, typename F> void eachAction(const plan::Stage &stage, F f) {
  for (const plan::Program &program : stage.programs)
    for (const plan::Instruction &instruction : program.instructions)
      if (const T *action = std::get_if<T>(&instruction.action))
        f(*action);
}

} // namespace

World::World(const plan::Plan &plan, Rendezvous &rendezvous) : plan(plan), rendezvous(rendezvous) {
  requests.resize(size_t(plan.worldSize()));
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const plan::Stage &stage = plan.stages[s];
    int64_t slots = 0;
    for (const plan::ScheduleStep &step : stage.schedule)
      slots = std::max<int64_t>(slots, step.slot + 1);
    for (int64_t c = 0; c < plan.ranksPerStage(); ++c)
      for (int64_t i = 0; i < slots * stage.requests; ++i)
        requests[s * size_t(plan.ranksPerStage()) + size_t(c)].push_back(std::make_unique<Request>(rendezvous));
    addMailboxes(stage, int64_t(s));
    addGroups(stage, int64_t(s));
  }
}

void World::addMailboxes(const plan::Stage &stage, int64_t stageIndex) {
  int64_t ranksPerStage = plan.ranksPerStage();
  auto add = [&](int64_t sender, int64_t receiver, int32_t channel) {
    std::unique_ptr<Mailbox> &mailbox = mailboxes[{sender, receiver, channel}];
    if (!mailbox)
      mailbox = std::make_unique<Mailbox>();
  };
  for (int64_t c = 0; c < ranksPerStage; ++c)
    for (int64_t m = 0; m < plan.microBatches; ++m) {
      Place place{c, m, ranksPerStage};
      int64_t rank = stageIndex * ranksPerStage + c;
      eachAction<plan::Send>(stage, [&](const plan::Send &send) {
        if (int64_t peer = place(send.peer); peer >= 0)
          add(rank, peer, send.channel);
      });
      eachAction<plan::Recv>(stage, [&](const plan::Recv &recv) {
        if (int64_t peer = place(recv.peer); peer >= 0)
          add(peer, rank, recv.channel);
      });
    }
}

void World::addGroups(const plan::Stage &stage, int64_t stageIndex) {
  eachAction<plan::Collective>(stage, [&](const plan::Collective &collective) {
    for (int64_t c = 0; c < plan.ranksPerStage(); ++c) {
      GroupPlace place = groupPlace(plan, c, collective.axes);
      std::unique_ptr<Group> &group = groups[{stageIndex, collective.axes, place.number}];
      if (!group)
        group = std::make_unique<Group>(rendezvous, int(place.size));
    }
  });
}

Expected<Seat> World::seat(const RankPlace &place, const std::vector<std::string> &axes) {
  for (const std::string &used : axes)
    if (std::none_of(plan.axes.begin(), plan.axes.end(), [&](const plan::Axis &axis) { return axis.name == used; }))
      return Status::error(ErrorKind::Plan, "a collective goes over axis '" + used + "', which the plan does not have");
  GroupPlace found = groupPlace(plan, place.coordinate, axes);
  auto group = groups.find({place.stage, axes, found.number});
  if (group == groups.end())
    return Status::error(ErrorKind::Internal, "a collective that is not in the plan");
  return Seat{group->second.get(), found.position};
}

Mailbox *World::mailbox(int64_t sender, int64_t receiver, int32_t channel) {
  auto found = mailboxes.find({sender, receiver, channel});
  return found == mailboxes.end() ? nullptr : found->second.get();
}

void World::reset() {
  for (auto &[key, group] : groups)
    group->barrier.reset();
  for (auto &[key, mailbox] : mailboxes)
    mailbox->reset();
  for (auto &list : requests)
    for (std::unique_ptr<Request> &request : list)
      request->reset();
}

} // namespace hpc::host
