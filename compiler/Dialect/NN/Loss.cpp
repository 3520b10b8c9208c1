// Cross entropy: its definition, which finds the label's logit by comparison, so that classes may be cut; and its gradient.
#include "compiler/Dialect/NN/GradientBuilder.h"

namespace hpc::nn {

/// At least f32.
static Type lossElement(Value logits) {
  Type element = tensorType(logits).getElementType();
  return element.isF16() || element.isBF16() ? Type(Float32Type::get(element.getContext())) : element;
}

void CrossEntropyOp::build(OpBuilder &builder, OperationState &state, Value logits, Value labels, int64_t ignoreIndex) {
  Type type = RankedTensorType::get(shapeOf(labels), lossElement(logits));
  build(builder, state, type, type, type, logits, labels, uint64_t(ignoreIndex));
}

ShardingRule CrossEntropyOp::getShardingRule() {
  ShardingRule rule = buildRule("...v,...->...,...,...; internal v", *this);
  for (ShardingFactor &factor : rule.factors)
    if (factor.isInternal) // no partial sum of the loss is a term of it
      factor.reduction = std::nullopt;
  return rule;
}

int64_t CrossEntropyOp::getFlops() { return 5 * tensorType(getLogits()).getNumElements(); }

LogicalResult CrossEntropyOp::verify() {
  auto logits = tensorType(getLogits()), labels = tensorType(getLabels());
  if (logits.getRank() == 0 || logits.getShape().drop_back() != labels.getShape() ||
      !isa<IntegerType>(labels.getElementType()) || labels.getElementType().isInteger(1))
    return emitOpError("(C1) labels ") << labels << " must be integers of the shape of " << logits
                                       << " without the last dim";
  for (Value result : getResults())
    if (shapeOf(result) != labels.getShape() || tensorType(result).getElementType() != lossElement(getLogits()))
      return emitOpError("(C2) result ") << result.getType() << " must have the labels' shape and element type "
                                         << lossElement(getLogits());
  return success();
}

/// [..., 1]: a number a row, to broadcast along it.
static Value alongRow(GradientBuilder &b, Value perRow) {
  SmallVector<int64_t> shape(shapeOf(perRow));
  shape.push_back(1);
  return b.reshape(perRow, shape);
}

/// Whether an element of [..., v] is the one of its row's label.
static Value isLabel(GradientBuilder &b, Value logits, Value labels) {
  auto type = tensorType(labels);
  return b.compare(ComparePredicate::eq, b.iota({shapeOf(logits).back()}, 0, type.getElementType()),
                   alongRow(b, labels));
}

static Value counts(GradientBuilder &b, CrossEntropyOp op) {
  return b.compare(ComparePredicate::ne, op.getLabels(),
                   b.number(op.getLabels(), double(int64_t(op.getIgnoreIndex()))));
}

/// A number a row, where the label is a class. One that is none has neither loss nor gradient: NaN, as a look-up of what
/// does not exist.
static Value ofClass(GradientBuilder &b, CrossEntropyOp op, Value perRow) {
  Value labels = op.getLabels();
  int64_t classes = shapeOf(op.getLogits()).back();
  Value isClass = AndOp::create(b.builder, b.loc, b.compare(ComparePredicate::ge, labels, b.number(labels, 0)),
                                b.compare(ComparePredicate::lt, labels, b.number(labels, double(classes))));
  return b.select(isClass, perRow, b.number(perRow, std::numeric_limits<double>::quiet_NaN()));
}

SmallVector<Value> CrossEntropyOp::decompose(OpBuilder &builder) {
  GradientBuilder b(builder, getLoc());
  ArrayRef<int64_t> rows = shapeOf(getLabels());
  Value x = b.cast(getLogits(), lossElement(getLogits()));
  int64_t last = int64_t(rows.size());
  Value top = b.reduce(ReduceKind::Max, x, {last});
  Value sum = b.sum(b.unary<ExpOp>(b.sub(x, top)), {last});
  Value picked = b.sum(b.select(isLabel(b, x, getLabels()), x, b.zero(x)), {last});
  // Both terms are 0 or more: however large the logits are, nothing cancels.
  Value loss = b.reshape(b.add(b.unary<LogOp>(sum), b.sub(top, picked)), rows);
  loss = ofClass(b, *this, loss);
  loss = b.select(counts(b, *this), loss, b.zero(loss));
  return {loss, b.reshape(top, rows), b.reshape(b.unary<ReciprocalOp>(sum), rows)};
}

/// The logits' gradient is p (dloss - s) - (dloss at the label), with p = exp(logits - top) share and s = share dshare. The largest
/// logits also get their part of dtop + s.
void CrossEntropyOp::buildGradients(GradientBuilder &b) {
  Value x = b.cast(getLogits(), lossElement(getLogits()));
  Value ofLoss = b.cotangent(0), ofTop = b.cotangent(1), ofShare = b.cotangent(2), top = alongRow(b, getTop());
  Value terms = b.unary<ExpOp>(b.sub(x, top));
  if (ofLoss) {
    ofLoss = alongRow(b, b.select(counts(b, *this), ofClass(b, *this, ofLoss), b.zero(ofLoss)));
    Value ofTerms = b.mul(alongRow(b, getShare()), ofLoss);
    b.give(0, b.sub(b.mul(terms, ofTerms), b.select(isLabel(b, x, getLabels()), ofLoss, b.zero(ofLoss))));
  }
  if (!ofTop && !ofShare)
    return;
  if (ofShare) {
    ofShare = b.mul(ofShare, getShare());
    b.give(0, b.unary<NegOp>(b.mul(terms, alongRow(b, b.mul(ofShare, getShare())))));
    ofTop = ofTop ? b.add(ofTop, ofShare) : ofShare;
  }
  Value isTop = b.compare(ComparePredicate::eq, x, top);
  Value count = b.sum(b.cast(isTop, tensorType(x).getElementType()), {int64_t(shapeOf(x).size()) - 1});
  b.give(0, b.select(isTop, b.div(alongRow(b, ofTop), count), b.zero(x)));
}

} // namespace hpc::nn
