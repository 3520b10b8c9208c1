// The session of this process: its ranks, their threads and the backend, by the flags.
#pragma once

#include "runtime/core/Session.h"
#include "tools/running/RunFlags.h"

namespace hpc {

struct RanksOfProcess {
  RankRange own;
  int64_t threads = 1; ///< of each
};

/// `processes`: null where this one is alone. Stages wait for each other, and a waiting stage leaves its cores to the others: with several
/// in this process, there are twice as many threads as cores.
RanksOfProcess ranksOf(const RunFlags &flags, const plan::Plan &plan, processes::Processes *processes);

/// `processes`: null where this one is alone.
Expected<std::unique_ptr<Backend>> openBackend(const RunFlags &flags, processes::Processes *processes);

/// Chooses the checkpoint to go on from where --load names a folder of them; its files are checked. All processes call it together, and get the
/// same. Notes are printed by the first process. A folder without any checkpoint leaves --load as it is, and the result is false.
Expected<bool> findLoad(RunFlags &flags, processes::Processes *processes);

/// Files of weights are named from `planFolder`. `traces`: also where the flags name no file for the trace. Notes about the weights are
/// printed by the first process.
Expected<std::unique_ptr<Session>> openSession(const RunFlags &flags, const plan::Plan &plan, const std::string &planFolder,
                                               const RanksOfProcess &ranks, bool traces, processes::Processes *processes);

/// Hashes of the weights and the checkpoint that this process would read. The session reports those that cannot be opened.
void addWeightFingerprints(const RunFlags &flags, const plan::Plan &plan, const std::string &planFolder, std::vector<launch::Fingerprint> &list);

} // namespace hpc
