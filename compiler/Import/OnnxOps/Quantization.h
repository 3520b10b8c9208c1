// Scales of whole numbers that are chosen while a model runs; shared by the ops that quantise their inputs.
#pragma once

#include "compiler/Import/OnnxOps/OnnxOp.h"

namespace hpc::onnx {

/// A scale and a zero point, f32, as they broadcast to the value.
struct Scaling {
  Value scale, zero; ///< zero: null where there is none
};

/// The scaling to u8 by the range of x, widened to hold 0, over `axes`, which stay with size 1.
Scaling dynamicScaling(NodeImport &n, Value x, ArrayRef<int64_t> axes);
/// round(x / scale) + zero, to the nearest number of the type.
Value quantized(NodeImport &n, Value x, const Scaling &scaling, DType to);
/// (x - zero) * scale in f32.
Value dequantized(NodeImport &n, Value x, const Scaling &scaling);
/// x, quantised to u8 by its own range over `axes` and taken back, in f32.
Value roundedDynamically(NodeImport &n, Value x, ArrayRef<int64_t> axes);

/// An input of the node, null where it has none there.
inline Value inputOrNone(NodeImport &n, size_t index) { return n.has(index) ? n.in(index) : Value(); }

/// Products of whole numbers of 8 bits less their zero points (null: none), exact, in f64.
Value wholeProduct(NodeImport &n, Value x, Value xZero, Value y, Value yZero);

} // namespace hpc::onnx
