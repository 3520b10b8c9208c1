// Casts from and to element types that are only stored (compiler/Import/NarrowTypes.h).
#pragma once

#include "compiler/Import/OnnxOps/OnnxOp.h"

namespace hpc::onnx {

/// The numbers of a value of a narrow type, as f32 or i32; any other value unchanged.
Value fromNarrow(NodeImport &n, Value x);
/// Numbers as a narrow type. Floats round to nearest even; too large ones become the largest number, or, without
/// `saturate`, infinity or NaN. Integers wrap. `roundMode` (up, down, nearest) is that of float8e8m0.
Value toNarrow(NodeImport &n, Value x, const NarrowType &type, bool saturate = true,
               const std::string &roundMode = "up");
/// Whole numbers (as floats) as a narrow integer type, the nearest one where they are out of range.
Value clampedNarrow(NodeImport &n, Value x, const NarrowType &type);

} // namespace hpc::onnx
