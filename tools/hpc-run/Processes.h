// How hpc-run becomes one of several processes: joins the others over the engine that its launcher calls for, and
// leaves them so that all end with one message.
#pragma once

#include "runtime/backend/processes/ProcessWorld.h"
#include "runtime/launch/Launch.h"

namespace hpc {

/// What of the command line concerns the other processes.
struct ProcessFlags {
  std::string launch = "auto", rendezvous;
  double peerTimeout = 3.5; ///< seconds
  bool deterministic = false;
};

/// The things that this process has read so far, and how that went: the others hear of an error and end too.
struct Prepared {
  Status status;
  int64_t worldSize = 0; ///< of the plan; 0 where it could not be read
  std::vector<launch::Fingerprint> fingerprints;
};

/// Returns when all processes are there, each with its ranks; from here on all hear within seconds of one that fails or
/// vanishes. Inputs and weights are read after it. A failure is printed before the others are told.
Expected<std::unique_ptr<processes::Processes>> meet(const launch::Launch &launch, const ProcessFlags &flags,
                                                     const Prepared &prepared);

/// The rest of it, of all processes: what each has read then, with the fingerprints of everything. Without `needsEngine`
/// processes that the environment started get no transport: their data goes another way.
Status introduce(processes::Processes &processes, const Prepared &prepared, bool needsEngine);

/// The end of a run: tells the others how it went here, and hears how it went with them.
Status leaveTogether(processes::Processes &processes, const Status &mine);

/// Prints why the run has failed, the first time it is called; the exit code.
int sayFailure(const Status &error);

/// Ends a process whose run has failed, and says why: once, though the thread that runs and the one that listens to the
/// others may both find out. The engine may wait for what will not come, so it is left as it is.
[[noreturn]] void endWith(const Status &error);

} // namespace hpc
