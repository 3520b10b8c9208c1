// Errors of Control, with the place where this process was when another vanished.
#include "runtime/backend/processes/ProcessControlPlane.h"

#include <chrono>
#include <thread>

namespace hpc::processes {

int64_t ProcessControlPlane::indexOnMachine() const {
  const std::vector<launch::Introduction> &all = processes.control->introductions();
  int64_t before = 0;
  for (int64_t other = 0; other < processes.process; ++other)
    before += all[size_t(other)].machine == processes.control->mine().machine;
  return before;
}

void ProcessControlPlane::fail(const Status &error) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (placed.ok())
      placed = error;
  }
  processes.control->fail(error);
}

/// An engine notices too that a process has vanished, but not which and why; Control reports that, a moment later.
Status ProcessControlPlane::explain(const Status &error) const {
  constexpr auto moment = std::chrono::milliseconds(1500);
  for (auto end = launch::Clock::now() + moment; launch::Clock::now() < end && failure().ok();)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return failure().ok() ? error : failure();
}

Status ProcessControlPlane::agree(const Status &mine, bool *answer) {
  auto idle = [this] {
    if (processes.transport)
      processes.transport->progress();
  };
  Status verdict = processes.control->agree(mine, idle, answer);
  std::lock_guard<std::mutex> lock(mutex);
  Status where = placed.ok() ? verdict : placed;
  placed = Status::success();
  if (verdict.ok() || processes.control->lost().ok())
    return verdict;
  return where.at("on host " + processes.control->mine().host);
}

} // namespace hpc::processes
