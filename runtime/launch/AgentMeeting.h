// How the workers of a torchrun find process 0, whose port MASTER_PORT cannot be, as the agent's store is there: process
// 0 listens at a free port and writes into the store where. Each entry names its meeting: that of an earlier run in the
// same store leads to nobody.
#pragma once

#include "runtime/launch/Join.h"
#include "runtime/launch/Launch.h"

namespace hpc::launch {

class AgentMeeting {
public:
  /// `secret`: HPC_SECRET; without one process 0 is reached on its own machine alone.
  AgentMeeting(const Launch &launch, std::string secret);

  /// Process 0: listens, says where, and hears of those who cannot come. `options` must not outlive this.
  Status open(JoinOptions &options, std::vector<Socket> &listeners);
  /// Any other process: looks where process 0 is.
  void attend(JoinOptions &options);
  /// The other process cannot come, and process 0 would wait for it. Does what it can.
  void refuse(const Status &why, const Introduction &mine);
  /// Process 0: all have come, or nobody is to come any more.
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
