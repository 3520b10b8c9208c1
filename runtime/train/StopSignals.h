// Signals to a training run: SIGTERM and SIGINT end it after the step, SIGUSR1 asks for a checkpoint. A scheduler may signal one process alone, so
// all of them agree on each request.
#pragma once

#include "runtime/core/Session.h"

namespace hpc {

/// One object at a time catches the signals while it lives. A second SIGTERM or SIGINT ends the process at once.
class StopSignals {
public:
  enum class Request { None, Save, Stop };

  StopSignals();
  StopSignals(const StopSignals &) = delete;
  ~StopSignals();

  /// The request since the last call; all processes call it together, between two steps, and get the same.
  Expected<Request> take(Session &session);
  /// Whether SIGTERM or SIGINT has come to this process.
  bool isStopRequested() const;
};

} // namespace hpc
