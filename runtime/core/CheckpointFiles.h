// Where a training run keeps what it saves: the model's weights in a file that safetensors and from_pretrained open as it is, and
// beside it, where there are any, the states of the optimizer.
#pragma once

#include "runtime/core/NamedTensor.h"

#include <string>

namespace hpc {

/// The file of weights that a path of --save or --load means: of a folder ("run/", or one that is there) its model.safetensors.
std::string checkpointFile(const std::string &path);

/// Where the states of a file of weights lie: "run/model.safetensors" -> "run/model.states".
std::string statesFile(const std::string &weights);

/// What the states of the save before are called while files are exchanged: after a kill in between they still belong to the
/// weights that are there.
std::string previousStatesFile(const std::string &weights);

/// The key in the metadata of states that says to which weights they belong, and its text for some weights.
inline constexpr const char *belongsToKey = "hpc.weights";
std::string belongsTo(uint64_t fingerprint);

/// Of a tensor beyond a MiB it looks at 16 pieces of 64 KiB: enough to tell two models apart, not to find a flipped bit.
uint64_t fingerprintOf(const std::byte *data, int64_t bytes, uint64_t before);
uint64_t fingerprintOf(const std::string &text, uint64_t before);
/// Of names and content.
uint64_t fingerprintOf(const NamedTensorMap &tensors);
/// The same, of what each tensor by name gives: fingerprintOf(data, bytes, fingerprintOf(name, 0)).
uint64_t fingerprintOfPrints(const std::map<std::string, uint64_t> &prints);

} // namespace hpc
