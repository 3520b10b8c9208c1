// The control plane of processes that have joined: Control's connections, for backends that move data by an engine of
// their own.
#pragma once

#include "runtime/backend/processes/ProcessWorld.h"
#include "runtime/core/ControlPlane.h"

namespace hpc::processes {

class ProcessControlPlane : public ControlPlane {
public:
  /// `processes` outlives it; its transport is left alone, and may be null.
  explicit ProcessControlPlane(Processes &processes) : processes(processes) {}

  int64_t indexOnMachine() const override;
  void fail(const Status &error) override;
  Status failure() const override { return processes.control->failure(); }
  Status lost() const override { return processes.control->lost(); }
  Expected<std::vector<std::string>> exchange(const std::string &mine) override {
    return processes.control->exchange(mine);
  }
  void watch(const RankWatch *ranks) override { processes.control->watch(ranks); }
  Status explain(const Status &error) const override;
  Status agree(const Status &mine, bool *answer) override;

private:
  Processes &processes;
  std::mutex mutex;
  Status placed; ///< the error of this process's first rank to fail in this step: it names the place
};

} // namespace hpc::processes
