// What the definitions of attention and of its gradient share: grouped operands, and the probabilities.
#pragma once

#include "compiler/Dialect/NN/DropoutDraw.h"

namespace hpc::nn {

struct AttentionOperands {
  Value query, key, value, bias, visible; ///< as nn.attention has them; the last two may be null
};
struct AttentionMask {
  double scale, hidden;
  std::optional<uint64_t> causalOffset;
  bool guarded;
  SmallVector<Value> queryStart, keyStart; ///< their sums are the positions of the first query and the first key
  Value queryPositions;                    ///< of each query, before queryStart is added; null: its number
};
/// The operands of an nn.attention or nn.attention_grad.
template <typename Op> AttentionOperands operandsOf(Op op) {
  return {op.getQuery(), op.getKey(), op.getValue(), op.getBias(), op.getVisible()};
}
template <typename Op> AttentionMask maskOf(Op op) {
  return {op.getScale().convertToDouble(), op.getHidden().value_or(llvm::APFloat(0.0)).convertToDouble(), op.getCausalOffset(),
          op.getGuarded(), SmallVector<Value>(op.getQueryStart()), SmallVector<Value>(op.getKeyStart()), op.getQueryPositions()};
}

/// The terms of what an attention has of keys that are not its own.
inline StringRef ofKeysElsewhere(AttentionOp op) { return op.getCarried().empty() ? "" : ",b(gr)qx,b(gr)qS"; }
inline StringRef ofKeysElsewhere(AttentionGradOp op) { return op.getWhole().empty() ? "" : ",b(gr)qS,b(gr)qx"; }

/// The sharding rule of an attention: one term for each operand, then `results` and clauses. Queries may be cut while keys
/// are whole.
template <typename Op> std::string attentionRuleText(Op op, StringRef operands, StringRef results) {
  std::string text = operands.str();
  for (Value ofScores : {op.getBias(), op.getVisible()})
    if (ofScores)
      text += ",b(gr)qK";
  text.append(op.getRandom().size() + op.getQueryStart().size() + op.getKeyStart().size(), ','); // of rank 0
  if (op.getQueryPositions())
    text += shapeOf(op.getQueryPositions()).size() == 1 ? ",q" : ",bq";
  text += ofKeysElsewhere(op);
  text += results.str() + "; sequence qK";
  // A query's position decides what it sees, and with dropout what it drops.
  std::string indices = op.getRandom().empty() ? "" : "bgr";
  if (!op.getQueryPositions() && (op.getCausalOffset() || !op.getRandom().empty()))
    indices += "q";
  return indices.empty() ? text : text + "; index " + indices;
}

/// (C3): what broadcasts to the scores.
LogicalResult verifyAttentionMask(Operation *attention, const AttentionOperands &operands, bool hasHidden);

/// (C8): a tensor of each query, in the type of scores of operands of type `element`.
LogicalResult verifyOfQueries(Operation *attention, Value value, ArrayRef<int64_t> shape, Type element);

/// An offset beyond it is cut to it, so that no sum of positions wraps: as far as a diagonal may be from any key.
constexpr int64_t farthestOffset = int64_t(1) << 61;

/// (C6) and (C7): starts and positions are numbers that a causal mask reads, positions also dropout.
LogicalResult verifyAttentionPositions(Operation *attention, const AttentionOperands &operands, const AttentionMask &mask);

/// Scores of an attention that count: [b, h, q, d] with [b, g, k, x], less those that a causal mask hides. All where the
/// positions are known at run time alone: some rank, or some step, sees nearly as many.
int64_t countScores(ArrayRef<int64_t> query, ArrayRef<int64_t> value, const AttentionMask &mask);

/// Grouped heads get a dim of their own, along which keys and values broadcast: [b, g, r, q, d] and [b, g, 1, k, d].
struct AttentionParts {
  AttentionParts(OpBuilder &builder, Location loc, AttentionOperands operands, AttentionMask mask,
                 std::optional<DropoutDraw> draw);

  /// softmax(scale q k^T where visible + bias, masked), in `wide`.
  Value probabilities();
  /// The same as a gradient reads them: 0 where a query sees nothing, which gives no gradient.
  Value probabilitiesForGradient();
  /// scale q k^T where visible + bias, -inf where masked: in `wide`.
  Value maskedScores();
  /// exp(scores - shift), where a shift of -inf counts as 0: a query that sees nothing has exponentials of 0.
  Value exponentials(Value scores, Value shift);
  Value finite(Value shift);
  /// Likewise where `logSum` is of all keys, of which these are a part.
  Value probabilitiesOfPart(Value logSum);
  /// The sums of rows, as a column; 0 where a query sees nothing, whose result may be NaN.
  Value meanOfPart(Value logSum, Value sums);
  /// The largest score (0) or the sum (1) of a log_sum, as a column beside the scores.
  Value columnOf(Value logSum, int64_t which);
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
  Value query, key, value, bias, visible;
  Type narrow, wide; ///< the operands' type, and that of scores: f32 where operands are f16 or bf16
  bool isGrouped;

private:
  Value sumOf(ArrayRef<Value> starts); ///< an i64; null without any
  Value lastKeys();                    ///< the last key that each query sees, before keyStart is subtracted
};

} // namespace hpc::nn
