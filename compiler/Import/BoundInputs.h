// Inputs that --const NAME=FILE binds at compile time: they become constants of the model.
#pragma once

#include "compiler/Import/OnnxModel.h"

namespace hpc::onnx {

/// Reads the array of each input named in `files` (name -> .npy, .npz or .pb) and checks it against the input's type
/// and shape. Symbols whose sizes follow are added to `dims`. An input with a default loses it. Errors: usage (no such
/// input, another type, shape or size), io, model.
Expected<std::vector<StoredTensor>> readBoundInputs(Model &model, const std::map<std::string, std::string> &files,
                                                    std::map<std::string, int64_t> &dims);

/// The tensors become initializers instead of inputs; `shapes` are those of model.inputs, before and after.
Status bindInputs(Model &model, std::vector<StoredTensor> bound, std::vector<std::vector<int64_t>> &shapes);

} // namespace hpc::onnx
