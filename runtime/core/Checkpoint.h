// What a training run saves: parameters under their names in the model, frozen ones and those that the loss does not reach too, in a
// file that safetensors and from_pretrained open; states in a file beside it; as metadata of both what else the run goes on with. The
// same run writes the same bytes on any layout that gives the same numbers.
#pragma once

#include "runtime/core/Session.h"

#include <map>

namespace hpc {

/// Writes all saved tensors of the session and what its plan only reads, one after the other, into files that get their names
/// (CheckpointFiles.h) when both are whole. A tied tensor is written under each of its names. All processes call it together; that of
/// rank 0 writes.
Status writeCheckpoint(const std::string &destination, const plan::Plan &plan, Session &session,
                       const std::map<std::string, std::string> &runState);

/// The metadata of a checkpoint: a file, or a folder with state.json. Errors: no such file, or no .safetensors.
Expected<std::map<std::string, std::string>> checkpointMetadata(const std::string &path);

} // namespace hpc
