// What the norms of the standard and of ONNX Runtime share.
#pragma once

#include "compiler/Import/OnnxOps/OnnxOp.h"

namespace hpc::onnx {

/// What a norm takes its statistics of: x, of 16 bits as f32 unless the node says otherwise (stash_type).
Value stashed(NodeImport &n, Value x);
/// The mean along the last dim, which stays with size 1.
Value meanLast(NodeImport &n, Value x);

enum class NormKind { Layer, Rms };
/// x normed along its last dim, in x's type, times weight plus bias [e] where they are there (RMS norm has no bias).
/// Statistics are those of `stashed`; then weight and bias come after the rounding, as the standard has it.
Value normOf(NodeImport &n, NormKind kind, Value x, Value weight, Value bias, double epsilon);

} // namespace hpc::onnx
