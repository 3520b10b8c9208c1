// Reads an ONNX file (any IR version: newer fields are passed over) into plain structs.
// Errors are error[model] for what is in the file and error[io] for what is not there.
#pragma once

#include "compiler/Import/OnnxModel.h"

namespace hpc::onnx {

struct ReadOptions {
  bool withoutWeights = false; ///< external data is not opened, though it may be there
};

/// External data whose file is not there makes absent tensors, no error.
Expected<Model> readOnnx(const std::string &path, const ReadOptions &options = {});

} // namespace hpc::onnx
