// How the workers of a torchrun find process 0, which cannot use MASTER_PORT, since the agent's store listens there:
// process 0 listens at a free port and writes its address into the store. Each entry names its meeting: one of an
// earlier run in the same store leads nowhere.
#pragma once

#include "runtime/launch/Join.h"
#include "runtime/launch/Launch.h"

namespace hpc::launch {

class AgentMeeting {
public:
  /// `secret`: HPC_SECRET; without one process 0 is reached on its own machine alone.
  AgentMeeting(const Launch &launch, std::string secret);

  /// Process 0: listens, publishes its address, receives failures of others. `options` must not outlive this object.
  Status open(JoinOptions &options, std::vector<Socket> &listeners);
  /// Any other process: looks where process 0 is.
  void attend(JoinOptions &options);
  /// Reports that the other process cannot come, for which process 0 would wait. Errors are ignored.
  void refuse(const Status &why, const Introduction &mine);
  /// Process 0: all have come, or the meeting is over.
  void close();

private:
  Expected<Place> find(Clock::time_point end);
  Status listen(std::vector<Socket> &listeners);
  Status listenElsewhere(int64_t &process);

  const Endpoint store;
  const std::string key, secret;
  const bool oneMachine;
  std::optional<AgentStore> opened; ///< of process 0, for the time of the meeting
  Place place;
};

} // namespace hpc::launch
