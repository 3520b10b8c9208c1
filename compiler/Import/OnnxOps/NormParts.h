// Parts that the norms of the standard and of ONNX Runtime share.
#pragma once

#include "compiler/Import/OnnxOps/OnnxOp.h"

namespace hpc::onnx {

/// The operand of a norm's statistics: x, for 16 bits as f32 unless the node has another type (stash_type).
Value stashed(NodeImport &n, Value x);
/// The mean along the last dim, which stays with size 1.
Value meanLast(NodeImport &n, Value x);

enum class NormKind { Layer, Rms };
/// x normed along its last dim, in x's type, times weight plus bias [e], which may be null (RMS norm has no bias).
/// Statistics are those of `stashed`; weight and bias are then applied after the rounding, as in the standard.
Value normOf(NodeImport &n, NormKind kind, Value x, Value weight, Value bias, double epsilon);

} // namespace hpc::onnx
