// x - max - log(sum(exp(x - max))), from the gather backwards.
#include "passes/Raise/CrossEntropyMatch.h"

#include "passes/Raise/RowReduction.h"
#include "passes/Raise/Scalars.h"

namespace hpc {

/// x of log(softmax(x)).
static Value ofLogSoftmax(Value value) {
  auto result = value.getDefiningOp<nn::SubOp>();
  auto shifted = result ? result.getLhs().getDefiningOp<nn::SubOp>() : nn::SubOp();
  auto logarithm = result ? result.getRhs().getDefiningOp<nn::LogOp>() : nn::LogOp();
  if (!shifted || !logarithm || reducedOverLast(shifted.getRhs(), ReduceKind::Max) != shifted.getLhs())
    return {};
  Value exponentials = reducedOverLast(logarithm.getOperand(), ReduceKind::Sum);
  auto exponential = exponentials ? exponentials.getDefiningOp<nn::ExpOp>() : nn::ExpOp();
  return exponential && exponential.getOperand() == shifted.getResult() ? shifted.getLhs() : Value();
}

/// The operand of a clamp from below, seen through views.
static bool isNonNegative(Value value) {
  while (auto view = value.getDefiningOp<nn::ReshapeOp>())
    value = view.getOperand();
  std::optional<WithScalar> clamped = matchWithScalar<nn::MaxOp>(value);
  return clamped && clamped->number >= 0;
}

std::optional<CrossEntropyMatch> matchCrossEntropy(nn::GatherNdOp gather) {
  Value data = gather.getData(), labels = gather.getIndices();
  Type element = nn::tensorType(data).getElementType();
  Value logits = ofLogSoftmax(data);
  if (!logits || !(element.isF32() || element.isF64()) ||
      !llvm::all_of(data.getUsers(), [](Operation *user) { return isa<nn::GatherNdOp>(user); }))
    return std::nullopt;
  ArrayRef<int64_t> rows = nn::shapeOf(data).drop_back();
  bool isOneARow = int64_t(gather.getBatchDims()) == int64_t(rows.size()) && nn::shapeOf(labels).back() == 1 &&
                   nn::tensorType(labels).getNumElements() == ShapedType::getNumElements(rows);
  if (!isOneARow)
    return std::nullopt;
  return CrossEntropyMatch{logits, labels, !isNonNegative(labels)};
}

} // namespace hpc
