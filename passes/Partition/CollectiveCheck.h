// Whether a collective does what its shardings say, from `before`, `after` and its axes alone.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"

namespace hpc {

bool isCollective(Operation *op);
/// Empty, or the fault in words.
std::string checkCollective(Operation *op, const dist::Mesh &mesh);

} // namespace hpc
