// A .safetensors file of a training run: parameters under their names in the model, frozen ones too, states, and as metadata what else
// the run goes on with. The same run writes the same bytes on any layout that gives the same numbers.
#pragma once

#include "runtime/core/Session.h"

#include <map>

namespace hpc {

/// Writes all saved tensors of the session and what its plan only reads, one after the other, under a temporary name that becomes `path` at the end.
/// All processes call it together; that of rank 0 writes.
Status writeCheckpoint(const std::string &path, const plan::Plan &plan, Session &session,
                       const std::map<std::string, std::string> &metadata);

/// The metadata of a file. Errors: no such file, or no .safetensors.
Expected<std::map<std::string, std::string>> checkpointMetadata(const std::string &path);

} // namespace hpc
