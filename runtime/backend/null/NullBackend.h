// The backend that does nothing: memory is addresses that nobody may touch, and every call is counted.
#pragma once

#include "runtime/backend/null/Counts.h"
#include "runtime/core/Backend.h"

namespace hpc::null {

/// Counts go to `counts[rank]`, which must have a place for every rank of the world and outlive the backend.
std::unique_ptr<Backend> createNullBackend(std::vector<Counts> &counts);

} // namespace hpc::null
