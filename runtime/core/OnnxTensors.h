// The stored tensors of an ONNX model, without the model: what hpc-run needs of it. Initializers and the values of Constant
// nodes, which older exporters write instead, also those inside of nodes: by their names, and by "NODE/ATTRIBUTE/name".
#pragma once

#include "runtime/base/File.h"
#include "runtime/core/NamedTensor.h"

#include <functional>
#include <memory>

namespace hpc {

/// Opens a file of external data by the location that the model names.
using OpenExternal = std::function<Expected<const MappedFile *>(const std::string &location)>;

/// Elements of every field: raw_data and packed floats stay where they are, others are put into `owned`.
/// A tensor that nobody can read (of another type, or in segments) has no dtype. Errors: a malformed message; bytes that do not
/// fit the shape; external data that is not there.
Expected<NamedTensorMap> readOnnxTensors(const MappedFile &file, const OpenExternal &open,
                                         std::vector<std::vector<std::byte>> &owned);

} // namespace hpc
