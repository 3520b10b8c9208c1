// Folding of one op: on the compact form where the result is the same, otherwise on all elements. For the compact form
// the interpreter evaluates a clone of the op with smaller types.
#include "compiler/Import/Folding.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Interpreter/Interpreter.h"

namespace hpc::onnx {
namespace {

using Known = ArrayRef<const KnownTensor *>;
using Folded = Expected<std::vector<KnownTensor>>;

SmallVector<int64_t> resultShape(Operation *op) { return SmallVector<int64_t>(nn::shapeOf(op->getResult(0))); }

Folded one(KnownTensor known) {
  std::vector<KnownTensor> results;
  results.push_back(std::move(known));
  return results;
}

/// Evaluates a copy of `op` on compact operands; its result, of `compactShape`, is the compact form of `op`'s result.
Folded evaluateCompact(Operation *op, Known operands, ArrayRef<int64_t> compactShape,
                       ArrayRef<NamedAttribute> attributes) {
  Block scratch;
  SmallVector<Value> values;
  SmallVector<const Tensor *> tensors;
  for (auto [operand, known] : llvm::zip_equal(op->getOperands(), operands)) {
    auto type = RankedTensorType::get(known->compact.shape, nn::tensorType(operand).getElementType());
    values.push_back(scratch.addArgument(type, op->getLoc()));
    tensors.push_back(&known->compact);
  }
  auto type = RankedTensorType::get(compactShape, nn::tensorType(op->getResult(0)).getElementType());
  OperationState state(op->getLoc(), op->getName(), values, {type}, attributes);
  Operation *copy = Operation::create(state);
  Expected<std::vector<Tensor>> results = evaluateOp(copy, tensors);
  copy->destroy();
  if (!results.ok())
    return results.status();
  return one(KnownTensor(resultShape(op), std::move(results->front())));
}

Folded foldElementwise(Operation *op, Known operands) {
  size_t rank = nn::shapeOf(op->getResult(0)).size();
  SmallVector<int64_t> shape(rank, 1);
  for (const KnownTensor *known : operands)
    for (size_t dim = 0; dim < known->compact.shape.size(); ++dim)
      if (known->compact.shape[dim] != 1)
        shape[rank - known->compact.shape.size() + dim] = known->compact.shape[dim];
  HPC_RETURN_IF_ERROR(checkFolded(elementCount(shape)));
  return evaluateCompact(op, operands, shape, op->getAttrs());
}

/// The same elements, with the compact sizes of the non-1 dims assigned to the non-1 dims of the new shape; nullopt if
/// the two shapes differ in more than dims of size 1.
std::optional<KnownTensor> reshapeCompact(const KnownTensor &known, ArrayRef<int64_t> shape) {
  Tensor compact = known.compact;
  compact.shape.assign(shape.size(), 1);
  if (known.isSplat())
    return KnownTensor(SmallVector<int64_t>(shape), std::move(compact));
  size_t from = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == 1)
      continue;
    while (from < known.shape.size() && known.shape[from] == 1)
      ++from;
    if (from == known.shape.size() || known.shape[from] != shape[dim])
      return std::nullopt;
    compact.shape[dim] = known.compact.shape[from++];
  }
  return KnownTensor(SmallVector<int64_t>(shape), std::move(compact));
}

KnownTensor broadcastCompact(const KnownTensor &known, ArrayRef<int64_t> shape) {
  Tensor compact = known.compact;
  compact.shape.insert(compact.shape.begin(), shape.size() - compact.shape.size(), 1);
  return KnownTensor(SmallVector<int64_t>(shape), std::move(compact));
}

Folded foldSlice(nn::SliceOp op, Known operands) {
  SmallVector<int64_t> starts(op.getStarts()), steps(op.getSteps()), sizes(resultShape(op));
  for (size_t dim = 0; dim < starts.size(); ++dim)
    if (operands[0]->compact.shape[dim] == 1) {
      starts[dim] = 0;
      steps[dim] = 1;
      sizes[dim] = std::min<int64_t>(sizes[dim], 1);
    }
  Builder builder(op.getContext());
  NamedAttrList attributes(op->getAttrs());
  attributes.set(op.getStartsAttrName(), builder.getDenseI64ArrayAttr(starts));
  attributes.set(op.getStepsAttrName(), builder.getDenseI64ArrayAttr(steps));
  return evaluateCompact(op, operands, sizes, attributes);
}

Folded foldTranspose(nn::TransposeOp op, Known operands) {
  SmallVector<int64_t> shape;
  for (int64_t dim : op.getPermutation())
    shape.push_back(operands[0]->compact.shape[dim]);
  return evaluateCompact(op, operands, shape, op->getAttrs());
}

/// On all elements.
Folded foldExpanded(Operation *op, Known operands) {
  std::vector<Tensor> full;
  SmallVector<const Tensor *> tensors;
  for (const KnownTensor *known : operands) {
    Expected<Tensor> tensor = expanded(*known);
    if (!tensor.ok())
      return tensor.status();
    full.push_back(std::move(*tensor));
  }
  int64_t elements = 0;
  for (Value result : op->getResults())
    elements += nn::tensorType(result).getNumElements();
  HPC_RETURN_IF_ERROR(checkFolded(elements));
  for (const Tensor &tensor : full)
    tensors.push_back(&tensor);
  Expected<std::vector<Tensor>> results = evaluateOp(op, tensors);
  if (!results.ok())
    return results.status();
  std::vector<KnownTensor> known;
  for (Tensor &result : *results)
    known.emplace_back(std::move(result));
  return known;
}

} // namespace

Folded foldOp(Operation *op, Known operands, bool elementwise) {
  bool empty =
      llvm::any_of(op->getResults(), [](Value result) { return nn::tensorType(result).getNumElements() == 0; });
  if (empty)
    return foldExpanded(op, operands);
  if (elementwise)
    return foldElementwise(op, operands);
  if (isa<nn::ReshapeOp>(op))
    if (auto known = reshapeCompact(*operands[0], resultShape(op)))
      return one(std::move(*known));
  if (isa<nn::BroadcastOp>(op))
    return one(broadcastCompact(*operands[0], resultShape(op)));
  if (auto slice = dyn_cast<nn::SliceOp>(op))
    return foldSlice(slice, operands);
  if (auto transpose = dyn_cast<nn::TransposeOp>(op))
    return foldTranspose(transpose, operands);
  // Any element of a tensor with equal elements is that element.
  if (isa<nn::GatherOp, nn::GatherNdOp>(op) && operands[0]->isSplat())
    return one(*reshapeCompact(KnownTensor(operands[0]->shape, operands[0]->compact), resultShape(op)));
  return foldExpanded(op, operands);
}

} // namespace hpc::onnx
