// What the definitions of attention and of its gradient share: grouped operands, and the probabilities.
#pragma once

#include "compiler/Dialect/NN/DropoutDraw.h"

namespace hpc::nn {

struct AttentionOperands {
  Value query, key, value, bias; ///< as nn.attention has them; no bias is null
};
struct AttentionMask {
  double scale;
  std::optional<uint64_t> causalOffset;
  bool guarded;
};

/// Scores of an attention that count: [b, h, q, d] with [b, g, k, x], less those that a causal mask hides.
int64_t countScores(ArrayRef<int64_t> query, ArrayRef<int64_t> value, std::optional<uint64_t> causalOffset);

/// Grouped heads get a dim of their own, along which keys and values broadcast: [b, g, r, q, d] and [b, g, 1, k, d].
struct AttentionParts {
  AttentionParts(OpBuilder &builder, Location loc, AttentionOperands operands, AttentionMask mask,
                 std::optional<DropoutDraw> draw);

  /// softmax(scale q k^T + bias, masked), in `wide`.
  Value probabilities();
  /// Of probabilities or of their gradient: what is dropped is 0, what is kept is scaled. As it is without dropout.
  Value dropped(Value weights);
  /// A tensor of the query's shape (but for its last dim), grouped as the query is.
  Value likeQuery(Value value);

  /// Rounded once, from f32 or wider to `element`.
  Value product(Value lhs, Value rhs, bool transposeLhs, bool transposeRhs, Type element);
  Value converted(Value value, Type element);
  Value reshaped(Value value, ArrayRef<int64_t> shape);
  Value number(double value); ///< in `wide`

  OpBuilder &builder;
  Location loc;
  AttentionMask mask;
  std::optional<DropoutDraw> draw;
  Value query, key, value, bias;
  Type narrow, wide; ///< the operands' type, and that of scores: f32 where operands are f16 or bf16
  bool isGrouped;
};

} // namespace hpc::nn
