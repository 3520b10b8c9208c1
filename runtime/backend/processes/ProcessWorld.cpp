// Tags are numbers of messages and groups in the plan's order, which is the same in all processes.
#include "runtime/backend/processes/ProcessWorld.h"

#include "runtime/backend/processes/EarlyMessages.h"
#include "runtime/base/Cores.h"
#include "runtime/plan/Groups.h"

#include <algorithm>
#include <sched.h>
#include <time.h>

namespace hpc::processes {

int64_t Processes::coresOfEach() const {
  const launch::Introduction &mine = control->mine();
  int64_t sharers = 0;
  for (const launch::Introduction &one : control->introductions())
    sharers += one.machine == mine.machine && one.cores == mine.cores;
  return availableCores() / std::max<int64_t>(1, sharers);
}

ProcessWorld::ProcessWorld(const plan::Plan &plan, Processes &processes, int64_t ranksPerProcess,
                           int64_t threadsPerRank, bool inRankOrder)
    : ranksPerProcess(ranksPerProcess), ranksPerStage(plan.ranksPerStage()), axes(plan.axes), processes(processes),
      spins(ranksPerProcess * threadsPerRank <= processes.coresOfEach()), here(std::make_shared<host::World>(plan, spins)),
      early(earlyMessageBytes(plan, {processes.process * ranksPerProcess, ranksPerProcess})) {
  for (const host::World::MailboxKey &key : here->mailboxKeys())
    if (processOf(std::get<0>(key)) != processOf(std::get<1>(key)))
      tags[key] = tagCount++;
  for (const host::World::GroupKey &key : here->groupKeys()) {
    const auto &[stage, over, number] = key;
    std::vector<std::pair<int64_t, int64_t>> members; // position, coordinate
    for (int64_t c = 0; c < ranksPerStage; ++c)
      if (plan::GroupSeat seat = plan::seatOf(axes, c, over); seat.group == number)
        members.push_back({seat.position, c});
    std::sort(members.begin(), members.end());
    std::map<int64_t, Side> sides;
    std::vector<int64_t> coordinates;
    for (const auto &[position, c] : members) {
      const int64_t process = processOf(stage * ranksPerStage + c);
      sides[process].process = process;
      sides[process].positions.push_back(position);
      coordinates.push_back(c);
    }
    if (sides.size() > 1 && sides.count(processes.process)) {
      std::vector<Side> list;
      for (auto &[process, side] : sides)
        list.push_back(std::move(side));
      groups[key] = std::make_unique<ProcessGroup>(*processes.transport, std::move(list), std::move(coordinates),
                                                   ranksPerStage, processes.process, tagCount, inRankOrder);
    }
    tagCount += 2;
  }
  processes.control->onFailure([this](const Status &error) { here->fail(error); });
}

ProcessWorld::~ProcessWorld() { processes.control->onFailure(nullptr); }

Status ProcessWorld::check() const {
  if (tagCount <= processes.transport->largestTag())
    return Status::success();
  return Status::error(ErrorKind::Unsupported, "the plan has " + std::to_string(tagCount) +
                                                   " kinds of messages between processes, the engine tells " +
                                                   std::to_string(processes.transport->largestTag()) +
                                                   " apart; use fewer processes, with several ranks each");
}

int64_t ProcessWorld::tag(int64_t sender, int64_t receiver, int32_t channel) const {
  auto found = tags.find({sender, receiver, channel});
  return found == tags.end() ? -1 : found->second;
}

int64_t ProcessWorld::earlyBytes(int64_t rank) const {
  auto found = early.find(rank);
  return found == early.end() ? 0 : found->second;
}

ProcessGroup *ProcessWorld::group(const RankPlace &place, const std::vector<std::string> &over) {
  auto found = groups.find({place.stage, over, plan::seatOf(axes, place.coordinate, over).group});
  return found == groups.end() ? nullptr : found->second.get();
}

std::vector<std::unique_ptr<Transfer>> &ProcessWorld::makeTransfers(int64_t rank, int64_t count) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::unique_ptr<Transfer>> &list = transfers[rank];
  list.resize(size_t(count));
  return list;
}

void ProcessWorld::prepare(ProcessGroup &group, const plan::Collective &collective, int64_t number,
                           const host::Reduction &reduction) {
  std::lock_guard<std::mutex> lock(mutex);
  group.prepare(collective, number, reduction);
}

Status ProcessWorld::post(ProcessGroup &group, const plan::Collective &collective, int64_t number,
                          const host::Reduction &reduction, int64_t position, const host::Share &share,
                          host::Request &request) {
  std::lock_guard<std::mutex> lock(mutex);
  HPC_RETURN_IF_ERROR(group.post(collective, number, reduction, position, share, request));
  isUnderWay = true;
  Status status = group.progress();
  return status.ok() ? status : engineFailed(status);
}

/// An engine notices too that a process has vanished, but not which and why; Control reports that, a moment later.
Status ProcessWorld::engineFailed(const Status &error) {
  constexpr auto moment = std::chrono::milliseconds(1500);
  for (auto end = launch::Clock::now() + moment; launch::Clock::now() < end && !here->failed();)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return here->failed() ? here->status() : error;
}

void ProcessWorld::progress() {
  // The rank inside does it for all.
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock.owns_lock())
    return;
  for (auto &[key, group] : groups)
    if (Status status = group->progress(); !status.ok()) {
      status = engineFailed(status);
      processes.control->fail(status);
      here->fail(status);
    }
  isUnderWay = std::any_of(groups.begin(), groups.end(), [](const auto &entry) { return !entry.second->isIdle(); });
}

void ProcessWorld::progressPosted() {
  if (isUnderWay.load(std::memory_order_relaxed) && !here->failed())
    progress();
}

template <typename F> Status ProcessWorld::waitUntil(F isDone) {
  for (int64_t round = 0;; ++round) {
    Expected<bool> done = isDone();
    if (!done.ok())
      return engineFailed(done.status());
    if (*done)
      return Status::success();
    if (here->failed())
      return here->status();
    progress();
    // If threads outnumber cores, polling takes the core from the process that is waited for.
    if (round < (spins ? 20000 : 0)) {
      __builtin_ia32_pause();
    } else if (round < (spins ? 40000 : 200)) {
      ::sched_yield();
    } else {
      timespec pause{0, 50000};
      ::nanosleep(&pause, nullptr);
    }
  }
}

Status ProcessWorld::wait(host::Request &request) {
  HPC_RETURN_IF_ERROR(waitUntil([&]() -> Expected<bool> { return !request.pending(); }));
  return request.wait();
}

Status ProcessWorld::wait(Transfer &transfer) {
  return waitUntil([&] { return transfer.done(); });
}

/// Control first: a rank of this process that wakes with the error fails with it too, from where it waited, and the
/// error of all must be the one that came first.
void ProcessWorld::fail(const Status &error) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (placed.ok())
      placed = error;
  }
  processes.control->fail(error);
  here->fail(error);
}

void ProcessWorld::giveUp() {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto &[key, group] : groups)
    group->reset();
  for (auto &[rank, list] : transfers)
    for (std::unique_ptr<Transfer> &transfer : list)
      transfer.reset();
}

Status ProcessWorld::restart() {
  giveUp();
  while (true) {
    Expected<bool> done = processes.transport->restart();
    if (!done.ok())
      return done.status();
    if (*done)
      break;
    HPC_RETURN_IF_ERROR(processes.control->lost());
    ::sched_yield();
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    placed = Status::success();
  }
  here->restart();
  // The others may be in the next step already, and one of them may have failed there.
  if (Status next = processes.control->failure(); !next.ok())
    here->fail(next);
  return Status::success();
}

Status ProcessWorld::agree(const Status &mine, bool *answer) {
  auto idle = [this] {
    progress();
    processes.transport->progress();
  };
  Status verdict = processes.control->agree(mine, idle, answer);
  if (verdict.ok())
    return verdict;
  if (!processes.control->lost().ok()) {
    giveUp(); // now, since an engine may continue transfers while it gives them up, and the ranks' memory is freed next
    // The place of this process in the step is more helpful than the fact that another has vanished.
    std::lock_guard<std::mutex> lock(mutex);
    return placed.ok() ? verdict.at("on host " + processes.control->mine().host)
                       : placed.at("on host " + processes.control->mine().host);
  }
  if (Status status = restart(); !status.ok())
    return status;
  return verdict;
}

} // namespace hpc::processes
