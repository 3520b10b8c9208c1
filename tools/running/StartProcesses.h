// --processes=N: this process starts N copies of itself, waits for them, and starts all again when one has died (--max-restarts). It runs no
// rank itself.
#pragma once

#include "tools/flags/Arguments.h"

#include <functional>

namespace hpc {

struct StartFlags {
  int64_t processes = 0; ///< on this machine; 0: this process runs ranks itself
  int64_t nodes = 1, node = 0, restarts = 0;
  double peerTimeout = 3.5; ///< seconds; 0: none
  std::string logs; ///< folder; "": none
  std::string launch, rendezvous;
};

StartFlags readStartFlags(const Arguments &arguments);
/// Errors for flags that go with --processes alone, and for those that do not go with it.
Status checkStartFlags(const Arguments &arguments, const StartFlags &flags);

/// Whether this process starts others: the flags say so, and it is not one of those.
bool startsProcesses(const StartFlags &flags);

/// The checkpoint from which the next processes go on.
struct Continuation {
  std::vector<std::string> arguments; ///< as Starting::arguments
  std::string from;                   ///< "" the beginning
};

struct Starting {
  StartFlags flags;
  std::vector<std::string> arguments; ///< of each process, the tool's name first
  std::function<Continuation()> again; ///< after a failure: from the newest checkpoint
};

/// `words` without each `--name=VALUE` and `--name VALUE`.
std::vector<std::string> withoutFlag(const std::vector<std::string> &words, const std::string &name);

/// Returns the exit code of this process when all have ended; the error of the processes is printed once. To be called before this process has
/// threads. A launcher's variables are an error.
int startProcesses(const Starting &starting);

} // namespace hpc
