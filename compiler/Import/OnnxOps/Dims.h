// Helpers of many compositions: dims moved and added, numbers that count along a dim, indices made non-negative. After
// an error everything here is harmless, as in GraphBuilder.
#pragma once

#include "compiler/Import/OnnxOps/OnnxOp.h"

namespace hpc::onnx {

/// x with `axis` as its last dim, the others in order; `moveLastTo` is the inverse.
Value moveToLast(NodeImport &n, Value x, int64_t axis);
Value moveLastTo(NodeImport &n, Value x, int64_t axis);
/// x with a new dim of size 1 before dim `at` (at the end where `at` is the rank).
Value insertDim(NodeImport &n, Value x, int64_t at);
/// x without the last dim, which has size 1.
Value dropLast(NodeImport &n, Value x);
/// 0, 1, ... size-1 along `dim` of a value of `rank` dims, all others of size 1. In the program it is an nn.iota.
Value countAlong(NodeImport &n, int64_t rank, int64_t dim, int64_t size);
/// i64 indices of a dim of `size`: a negative one counts from the end. Those out of range stay out of range.
Value nonNegative(NodeImport &n, Value indices, int64_t size);
/// Input `index` as i64, an error when it holds no integers.
Value indexInput(NodeImport &n, size_t index);
/// The number that no element of the type is below (or above): an infinity, or the end of an integer type.
Value lowest(NodeImport &n, Value like);
Value highest(NodeImport &n, Value like);
/// A reduction of the last dim, which is dropped.
Value reduceLast(NodeImport &n, ReduceKind kind, Value x);
/// ONNX's MatMul: a 1-D operand becomes a row (left) or a column (right), and the dim is dropped afterwards. `isWide`:
/// for 16 bits, in f32, not yet rounded.
Value matmulOf(NodeImport &n, Value x, Value y, bool isWide = false);
/// alpha X Y; for 16 bits scaled and left in f32: the product may exceed the range of f16.
Value scaledProduct(NodeImport &n, Value x, Value y, bool transposeX, bool transposeY, double alpha);
/// data[..., i, :] for i out of indices [..., j]: all dims but the last of `indices` are shared with data, whose next
/// dim is read. Indices must be in range.
Value pickAlong(NodeImport &n, Value data, Value indices);

} // namespace hpc::onnx
