// Parts that all attention ops share: heads, masks, and the steps from scores to the result. An op reads its inputs
// into an Attending; attend() alone decides between one nn.attention and single ops.
#pragma once

#include "compiler/Import/OnnxOps/OnnxOp.h"

namespace hpc::onnx {

struct Attending {
  Value query, key, value; ///< [b, h, q, d], [b, g, k, d], [b, g, k, x]; g divides h
  double scale = 1;
  double softcap = 0; ///< c * tanh(scores / c) before masks; 0: none
  Value bias;         ///< added to scores, broadcasts to [b, h, q, k]; may be null
  Value visible;      ///< bool, broadcasts to [b, h, q, k]; false elements count as -inf; may be null
  std::optional<int64_t> causalOffset; ///< query i sees no key j > i + o

  /// A query that sees no key gives 0, as the standard requires, instead of NaN.
  bool zeroUnseen = false;

  int64_t queries() const { return nn::shapeOf(query)[2]; }
  int64_t keys() const { return nn::shapeOf(key)[2]; }
  /// Hides the elements for which `condition` is false.
  void see(NodeImport &n, Value condition);
};

/// The scores that an op returns besides its result.
enum class Scores { None, Scaled, Capped, Masked, Weights };

struct Attended {
  Value result; ///< [b, h, q, x]
  Value scores; ///< [b, h, q, k]; null unless asked for
};

/// `precision`: of the softmax, where the scores are spelled out.
Attended attend(NodeImport &n, Attending a, Scores wanted = Scores::None, std::optional<DType> precision = {});

/// Whether queries, keys and values have the shapes in Attending; an error if not.
bool haveFittingShapes(NodeImport &n, const Attending &a);
/// The product of one operand per head, [b, h, q, d], with one per group, [b, g, d, k] (or [b, g, k, d], transposed).
/// `isWide`: not rounded to 16 bits.
Value groupedProduct(NodeImport &n, Value x, Value y, bool transposeY, bool isWide = false);

/// [b, s, heads * d] -> [b, heads, s, d]; rank 4 stays.
Value splitHeads(NodeImport &n, Value x, int64_t heads);
/// The inverse: [b, heads, s, d] -> [b, s, heads * d].
Value mergeHeads(NodeImport &n, Value x);
/// Leading dims of size 1 until there are four.
Value fourDims(NodeImport &n, Value x);
/// One number a batch entry, [b] or [b, 1], as i64 [b, 1, 1, 1].
Value perBatch(NodeImport &n, Value x);
/// 0, 1, ... along dim 2 or 3 of four.
Value queryPositions(NodeImport &n, int64_t count);
Value keyPositions(NodeImport &n, int64_t count);

/// Rotates pairs of the last dim's first `size` elements: halves, or neighbours where `interleaved`. cos and sin broadcast
/// to x's other dims and have size / 2 elements.
Value rotate(NodeImport &n, Value x, Value cos, Value sin, int64_t size, bool interleaved);

} // namespace hpc::onnx
