// How hpc-run becomes one of several processes: joins the others over the engine that its launcher calls for, and
// leaves them so that all end with one message.
#pragma once

#include "runtime/backend/processes/ProcessWorld.h"
#include "runtime/launch/Launch.h"

namespace hpc {

/// The flags that concern the other processes.
struct ProcessFlags {
  std::string launch = "auto", rendezvous;
  double peerTimeout = 3.5, stallTimeout = 30; ///< seconds
  bool deterministic = false;
};

/// The things that this process has read so far, and how that went: the others hear of an error and end too.
struct Prepared {
  Status status;
  int64_t worldSize = 0; ///< of the plan; 0 where it could not be read
  std::vector<launch::Fingerprint> fingerprints;
};

/// Returns when all processes are there, each with its ranks; from here on a process that fails or vanishes is reported
/// to all within seconds. Inputs and weights are read after it. A failure is printed before the others receive it.
Expected<std::unique_ptr<processes::Processes>> meet(const launch::Launch &launch, const ProcessFlags &flags,
                                                     const Prepared &prepared);

/// The rest of the introduction, for all processes: the files read after meet(), with the fingerprints of everything.
/// Without `needsEngine` processes started by the environment get no transport: their data moves another way.
Status introduce(processes::Processes &processes, const Prepared &prepared, bool needsEngine);

/// The end of a run: sends this process's status to the others, and receives theirs.
Status leaveTogether(processes::Processes &processes, const Status &mine);

/// Prints why the run has failed, the first time it is called; the exit code.
int sayFailure(const Status &error);

/// Ends a process whose run has failed, and prints the reason: once, though the running thread and the one that listens
/// to the others may both find it. The engine may wait for messages that will not come, so it is left as it is.
[[noreturn]] void endWith(const Status &error);

} // namespace hpc
