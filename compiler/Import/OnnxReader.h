// Reads an ONNX file (any IR version: newer fields are passed over) into plain structs.
// Errors are error[model] for what is in the file and error[io] for what is not there.
#pragma once

#include "compiler/Import/OnnxModel.h"

namespace hpc::onnx {

Expected<Model> readOnnx(const std::string &path);

} // namespace hpc::onnx
