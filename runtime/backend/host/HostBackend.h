// The backend of this machine's CPU: ranks are threads, memory is shared. Sessions of one process that hold a part of
// the ranks each talk through one World, which they are given.
#pragma once

#include "runtime/backend/host/World.h"

#include <memory>

namespace hpc::host {

/// Without a world the session is alone and holds all ranks. `mayUseTiles`: products may use the tile registers.
std::unique_ptr<Backend> createHostBackend(std::shared_ptr<World> world = nullptr, bool mayUseTiles = true);

} // namespace hpc::host
