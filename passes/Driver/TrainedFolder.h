// The trained model as a folder of Hugging Face, which from_pretrained opens.
#pragma once

#include "passes/Driver/TrainedModel.h"

namespace hpc {

struct FolderSource {
  std::string pretrained; ///< folder (or file in it) whose names of tensors, config.json and other files are taken; "": names of the model, and the files beside it
  std::string tokenizer;  ///< folder (or file in it) of the tokenizer, where `pretrained` has none; "": none
  int64_t shardBytes = 5'000'000'000; ///< more than that of tensors makes several files with an index, as save_pretrained does
};

/// Writes model.safetensors, or shards and their index, and copies the files of the configuration and the tokenizer that are there. Each file is written whole before
/// it gets its name, weights after all others; files of weights that the folder had before are then removed. Tensors of `pretrained` that the model does not have are
/// copied. Memory: a few MiB; mapped files besides. Returns notes for people. Errors: those of TrainedModel::open; a tensor that an exporter derived from a square
/// parameter, unless `pretrained` shows how; trained tensors that `pretrained` has no name for.
Expected<std::vector<std::string>> writeTrainedFolder(const std::string &model, const TrainedWeights &weights, const FolderSource &source, const std::string &folder);

} // namespace hpc
