// What the processes of a run tell each other beside their data: that a rank has failed and why, how a step ended, and
// what all must know before they can talk. A backend whose data goes by an engine of its own needs no more of them.
#pragma once

#include "runtime/base/RankWatch.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hpc {

/// May be called by all threads of a process.
class ControlPlane {
public:
  virtual ~ControlPlane() = default;

  /// How many processes before this one, in the order of their ranks, share its machine.
  virtual int64_t indexOnMachine() const = 0;
  /// Ends the step of all processes with `error`, unless another was first.
  virtual void fail(const Status &error) = 0;
  /// Success, or what has failed in this step, wherever. Asked by whoever waits.
  virtual Status failure() const = 0;
  /// Success, or why there will be no other step: a process has vanished.
  virtual Status lost() const = 0;
  /// The texts of all processes, in their order, when all have called it; or the error of one that has failed.
  virtual Expected<std::vector<std::string>> exchange(const std::string &mine) = 0;
  /// What to say when an engine gives `error`: why another process has gone, if one has. May wait a moment for that.
  virtual Status explain(const Status &error) const = 0;
  /// See Backend::watch.
  virtual void watch(const RankWatch *) {}
  /// See Backend::agree.
  virtual Status agree(const Status &mine, bool *answer) = 0;
};

} // namespace hpc
