// The backend of a CPU whose plan runs in several processes, on one machine or many: code, memory and products are the
// host's; the engine moves data between processes.
#pragma once

#include "runtime/backend/processes/ProcessWorld.h"

namespace hpc::processes {

/// `processes` outlives the backend. `inRankOrder`: reductions give the bits that threads would. `mayUseTiles`: see
/// host::createHostBackend.
std::unique_ptr<Backend> createProcessBackend(Processes &processes, bool inRankOrder, bool mayUseTiles = true);

} // namespace hpc::processes
