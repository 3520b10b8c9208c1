// Handlers only set flags, until the second SIGTERM or SIGINT has its default action.
#include "runtime/train/StopSignals.h"

#include <atomic>
#include <csignal>

namespace hpc {

static std::atomic<bool> stopRequested{false}, saveRequested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "handlers write them");
static struct sigaction actionsBefore[3];
static constexpr int stopSignals[3] = {SIGTERM, SIGINT, SIGUSR1};

static void onStopSignal(int signal) {
  if (signal == SIGUSR1) {
    saveRequested = true;
    return;
  }
  if (!stopRequested.exchange(true))
    return;
  std::signal(signal, SIG_DFL);
  std::raise(signal); // when this handler has returned
}

StopSignals::StopSignals() {
  stopRequested = saveRequested = false;
  struct sigaction action = {};
  action.sa_handler = onStopSignal;
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 3; ++i)
    ::sigaction(stopSignals[i], &action, &actionsBefore[i]);
}

StopSignals::~StopSignals() {
  for (int i = 0; i < 3; ++i)
    ::sigaction(stopSignals[i], &actionsBefore[i], nullptr);
}

bool StopSignals::isStopRequested() const { return stopRequested; }

Expected<StopSignals::Request> StopSignals::take(Session &session) {
  Expected<bool> any = session.any(stopRequested || saveRequested);
  HPC_RETURN_IF_ERROR(any.status());
  if (!*any)
    return Request::None;
  // A signal that comes between the two questions is answered by the next call.
  Expected<bool> stops = session.any(stopRequested);
  HPC_RETURN_IF_ERROR(stops.status());
  if (!*stops)
    saveRequested = false;
  return *stops ? Request::Stop : Request::Save;
}

} // namespace hpc
