// A .safetensors file of a training run: parameters under their names in the model, frozen ones too, states, and in its
// metadata how many steps were done. The same run writes the same bytes on any layout that gives the same numbers.
#pragma once

#include "runtime/core/Session.h"

namespace hpc {

/// Writes all saved tensors of the session and what its plan only reads, one after the other, under a temporary name that becomes `path` at the end.
/// All processes call it together; that of rank 0 writes. `steps`: how many were done.
Status writeCheckpoint(const std::string &path, const plan::Plan &plan, Session &session, int64_t steps);

/// How many steps were done when the file was written. Errors: no such file, or one that is no checkpoint.
Expected<int64_t> stepsOfCheckpoint(const std::string &path);

} // namespace hpc
