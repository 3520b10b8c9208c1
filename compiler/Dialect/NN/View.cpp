// Ops that move elements: rules from shapes, folds of identities, and how a slice becomes local.
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

std::optional<NamedAttrList> attributesWithLaterAxis(Operation *op, IntegerAttr axis, StringAttr name, int64_t more) {
  if (axis.getInt() == 0)
    return std::nullopt;
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.set(name, IntegerAttr::get(axis.getType(), axis.getInt() + more));
  return attributes;
}

/// One entry per dim, with `lead` for `more` dims before the first.
static DenseI64ArrayAttr extendedBy(DenseI64ArrayAttr entries, int64_t more, int64_t lead) {
  SmallVector<int64_t> all(size_t(more), lead);
  llvm::append_range(all, entries.asArrayRef());
  return DenseI64ArrayAttr::get(entries.getContext(), all);
}

// ---- reshape ------------------------------------------------------------------------------------

ShardingRule ReshapeOp::getShardingRule() { return viewRule(shapeOf(getOperand()), shapeOf(getResult())); }

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getResult().getType())
    return getOperand();
  // reshape(reshape(x)) is one reshape while shapes are serial; with shardings the middle shape says how sub-dims
  // regroup.
  auto inner = getOperand().getDefiningOp<ReshapeOp>();
  if (inner && !tensorType(getResult()).getEncoding() && !tensorType(inner.getOperand()).getEncoding()) {
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return {};
}

LogicalResult ReshapeOp::verify() {
  auto from = tensorType(getOperand()), to = tensorType(getResult());
  if (from.getNumElements() != to.getNumElements() || from.getElementType() != to.getElementType())
    return emitOpError("(C1) ") << from << " and " << to << " must have as many elements of one type";
  return success();
}

// ---- transpose ----------------------------------------------------------------------------------

void TransposeOp::build(OpBuilder &builder, OperationState &state, Value operand, ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(shapeOf(operand)[dim]);
  build(builder, state, RankedTensorType::get(shape, tensorType(operand).getElementType()), operand, permutation);
}

ShardingRule TransposeOp::getShardingRule() { return transposeRule(shapeOf(getOperand()), getPermutation()); }

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  for (auto [index, dim] : llvm::enumerate(getPermutation()))
    if (int64_t(index) != dim)
      return {};
  return getOperand().getType() == getResult().getType() ? getOperand() : Value();
}

std::optional<NamedAttrList> TransposeOp::attributesForMoreDims(int64_t more) {
  if (getPermutation().empty() || getPermutation()[0] != 0)
    return std::nullopt;
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, more));
  for (int64_t dim : getPermutation())
    permutation.push_back(dim + more);
  NamedAttrList attributes((*this)->getAttrDictionary());
  attributes.set(getPermutationAttrName(), DenseI64ArrayAttr::get(getContext(), permutation));
  return attributes;
}

LogicalResult TransposeOp::verify() {
  ArrayRef<int64_t> from = shapeOf(getOperand()), to = shapeOf(getResult());
  SmallVector<int64_t> sorted(getPermutation());
  llvm::sort(sorted);
  for (auto [index, dim] : llvm::enumerate(sorted))
    if (int64_t(index) != dim)
      return emitOpError("(C1) permutation ") << getPermutationAttr() << " is not one of " << from.size() << " dims";
  if (sorted.size() != from.size() || to.size() != from.size())
    return emitOpError("(C1) permutation, operand and result must have one rank");
  for (auto [index, dim] : llvm::enumerate(getPermutation()))
    if (to[index] != from[dim])
      return emitOpError("(C1) result dim ") << index << " must be operand dim " << dim << " of size " << from[dim];
  return success();
}

// ---- broadcast ----------------------------------------------------------------------------------

ShardingRule BroadcastOp::getShardingRule() { return elementwiseRule(*this, {LinearClause::Sum, {0}}); }

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  return getOperand().getType() == getResult().getType() ? getOperand() : Value();
}

LogicalResult BroadcastOp::verify() {
  ArrayRef<int64_t> from = shapeOf(getOperand()), to = shapeOf(getResult());
  bool fits = from.size() <= to.size();
  for (size_t dim = 0; fits && dim < from.size(); ++dim)
    fits = from[dim] == 1 || from[dim] == to[to.size() - from.size() + dim];
  if (!fits)
    return emitOpError("(C1) ") << getOperand().getType() << " does not broadcast to " << getResult().getType();
  return success();
}

// ---- slice --------------------------------------------------------------------------------------

ShardingRule SliceOp::getShardingRule() {
  ArrayRef<int64_t> from = shapeOf(getOperand()), sizes = shapeOf(getResult());
  // A dim walked in steps other than 1 looks like an unequal part: start -1 keeps sliceRule from seeing an equal one.
  SmallVector<int64_t> starts(getStarts());
  for (auto [dim, step] : llvm::enumerate(getSteps()))
    if (step != 1 && from[dim] != 1 && sizes[dim] != 1)
      starts[dim] = -1;
  return sliceRule(from, starts, sizes);
}

Operation *SliceOp::localize(OpBuilder &builder, ValueRange operands, TypeRange resultTypes, ValueRange) {
  ArrayRef<int64_t> globalSizes = shapeOf(getResult()), from = shapeOf(getOperand());
  ArrayRef<int64_t> localSizes = cast<RankedTensorType>(resultTypes[0]).getShape();
  SmallVector<int64_t> starts(getStarts());
  // Part number p of an equal split starts at p times the local part.
  for (size_t dim = 0; dim < starts.size(); ++dim)
    if (globalSizes[dim] > 0 && localSizes[dim] != globalSizes[dim] && from[dim] % globalSizes[dim] == 0)
      starts[dim] = starts[dim] / globalSizes[dim] * localSizes[dim];
  auto local = SliceOp::create(builder, getLoc(), resultTypes[0], operands[0], starts, getSteps());
  local->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  return local;
}

std::optional<NamedAttrList> SliceOp::attributesForMoreDims(int64_t more) {
  if (getStarts().empty() || getStarts()[0] != 0 || getSteps()[0] != 1 ||
      shapeOf(getOperand())[0] != shapeOf(getResult())[0])
    return std::nullopt;
  NamedAttrList attributes((*this)->getAttrDictionary());
  attributes.set(getStartsAttrName(), extendedBy(getStartsAttr(), more, 0));
  attributes.set(getStepsAttrName(), extendedBy(getStepsAttr(), more, 1));
  return attributes;
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  bool whole = llvm::all_of(getStarts(), [](int64_t start) { return start == 0; }) &&
               llvm::all_of(getSteps(), [](int64_t step) { return step == 1; });
  return whole && getOperand().getType() == getResult().getType() ? getOperand() : Value();
}

LogicalResult SliceOp::verify() {
  ArrayRef<int64_t> from = shapeOf(getOperand()), sizes = shapeOf(getResult());
  if (getStarts().size() != from.size() || getSteps().size() != from.size() || sizes.size() != from.size())
    return emitOpError("(C1) needs one start and one step for each of ") << from.size() << " dims";
  for (size_t dim = 0; dim < from.size(); ++dim) {
    int64_t first = getStarts()[dim], last = first + (sizes[dim] - 1) * getSteps()[dim];
    if (sizes[dim] > 0 && (first < 0 || first >= from[dim] || last < 0 || last >= from[dim]))
      return emitOpError("(C2) dim ") << dim << " reads " << first << " to " << last << " of " << from[dim];
  }
  return success();
}

// ---- concat, pad --------------------------------------------------------------------------------

ShardingRule ConcatOp::getShardingRule() { return concatRule(*this, getAxis()); }

std::optional<NamedAttrList> ConcatOp::attributesForMoreDims(int64_t more) {
  return attributesWithLaterAxis(*this, getAxisAttr(), getAxisAttrName(), more);
}

LogicalResult ConcatOp::verify() {
  ArrayRef<int64_t> to = shapeOf(getResult());
  if (getAxis() < 0 || size_t(getAxis()) >= to.size())
    return emitOpError("(C1) axis ") << getAxis() << " of rank " << to.size();
  int64_t sum = 0;
  for (Value operand : getOperands()) {
    SmallVector<int64_t> shape(shapeOf(operand));
    if (shape.size() != to.size())
      return emitOpError("(C1) operand ") << operand.getType() << " has another rank than the result";
    sum += shape[getAxis()];
    shape[getAxis()] = to[getAxis()];
    if (ArrayRef<int64_t>(shape) != to)
      return emitOpError("(C1) operand ") << operand.getType() << " differs from the result off the axis";
  }
  return sum == to[getAxis()]
             ? success()
             : emitOpError("(C1) operands have ") << sum << " along the axis, the result " << to[getAxis()];
}

ShardingRule PadOp::getShardingRule() {
  SmallVector<int64_t> padded;
  for (size_t dim = 0; dim < getLow().size(); ++dim)
    if (getLow()[dim] || getHigh()[dim])
      padded.push_back(dim);
  ShardingRule rule = axisLocalRule(*this, padded);
  if (Builder(getContext()).getZeroAttr(tensorType(getResult()).getElementType()) == getValue())
    rule.linear = {LinearClause::Sum, {0}}; // zeros add up to zero
  return rule;
}

std::optional<NamedAttrList> PadOp::attributesForMoreDims(int64_t more) {
  if (getLow().empty() || getLow()[0] != 0 || getHigh()[0] != 0)
    return std::nullopt;
  NamedAttrList attributes((*this)->getAttrDictionary());
  attributes.set(getLowAttrName(), extendedBy(getLowAttr(), more, 0));
  attributes.set(getHighAttrName(), extendedBy(getHighAttr(), more, 0));
  return attributes;
}

LogicalResult PadOp::verify() {
  ArrayRef<int64_t> from = shapeOf(getOperand()), to = shapeOf(getResult());
  if (getLow().size() != from.size() || getHigh().size() != from.size() || to.size() != from.size())
    return emitOpError("(C1) needs low and high for each of ") << from.size() << " dims";
  for (size_t dim = 0; dim < from.size(); ++dim)
    if (getLow()[dim] < 0 || getHigh()[dim] < 0)
      return emitOpError("(C2) negative padding of dim ") << dim << "; use nn.slice";
  return success();
}

} // namespace hpc::nn
