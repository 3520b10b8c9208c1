// The backend of this machine's CPU: ranks are threads, memory is shared.
#pragma once

#include "runtime/core/Backend.h"

#include <memory>

namespace hpc::host {

std::unique_ptr<Backend> createHostBackend();

} // namespace hpc::host
