// The memory that an ONNX file's messages take.
#pragma once

#include "runtime/base/Footprint.h"

namespace hpc::onnx {

/// Of a ModelProto.
extern const FootprintMessage modelFootprint;
/// Of a TensorProto.
extern const FootprintMessage tensorFootprint;

} // namespace hpc::onnx
