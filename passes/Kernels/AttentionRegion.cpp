// Recognizes regions of attention: operands are followed up through views to the region's arguments, results down to
// what it yields.
#include "passes/Kernels/AttentionRegion.h"

#include "passes/Kernels/StridedView.h"

namespace hpc::kernels {

bool isAttention(Operation *op) { return isa<nn::AttentionOp, nn::AttentionGradOp>(op); }

bool fitsAttentionKernel(Operation *attention) {
  // 64 queries and 64 keys at a time, in f64: a gradient holds the most of them.
  constexpr int64_t maxChannels = 512, maxSharedQueries = 1 << 15;
  ArrayRef<int64_t> query = nn::shapeOf(attention->getOperand(0)), key = nn::shapeOf(attention->getOperand(1)),
                    value = nn::shapeOf(attention->getOperand(2));
  if (std::max(query[3], value[3]) > maxChannels)
    return false;
  // A gradient keeps three numbers of each query that shares a group of keys.
  int64_t repeat = key[1] == 0 ? 1 : query[1] / key[1];
  return isa<nn::AttentionOp>(attention) || query[2] == 0 || repeat <= maxSharedQueries / query[2];
}

/// The operand as part of one of the region's arguments.
static std::optional<AttentionTensor> findOperand(Value value) {
  SmallVector<Operation *> views;
  Value source = value;
  for (; source.getDefiningOp(); source = source.getDefiningOp()->getOperand(0)) {
    if (source.getDefiningOp()->getNumOperands() != 1)
      return std::nullopt;
    views.push_back(source.getDefiningOp());
  }
  StridedView view(nn::shapeOf(source));
  for (Operation *op : llvm::reverse(views))
    if (!applyView(op, view))
      return std::nullopt;
  std::optional<SmallVector<int64_t>> strides = view.strides();
  if (!strides || strides->size() != 4)
    return std::nullopt;
  return AttentionTensor{cast<BlockArgument>(source).getArgNumber(),
                         view.offset(),
                         {(*strides)[0], (*strides)[1], (*strides)[2], (*strides)[3]},
                         nn::tensorType(value).getElementType()};
}

/// The op's result as what the region yields: through its only readers, which are views that lose and repeat nothing.
static std::optional<AttentionTensor> findResult(Value value) {
  SmallVector<Operation *> views;
  Value yielded = value;
  for (;;) {
    if (!yielded.hasOneUse())
      return std::nullopt;
    Operation *user = *yielded.user_begin();
    if (isa<nn::YieldOp>(user))
      break;
    if (!isInvertibleView(user))
      return std::nullopt;
    views.push_back(user);
    yielded = user->getResult(0);
  }
  StridedView view(nn::shapeOf(yielded));
  for (Operation *op : llvm::reverse(views))
    if (!applyInverse(op, view))
      return std::nullopt;
  std::optional<SmallVector<int64_t>> strides = view.strides();
  if (!strides)
    return std::nullopt;
  return AttentionTensor{yielded.use_begin()->getOperandNumber(),
                         view.offset(),
                         {(*strides)[0], (*strides)[1], (*strides)[2], (*strides)[3]},
                         nn::tensorType(value).getElementType()};
}

namespace {
/// The operands and attributes that both ops have, by name.
struct Parts {
  Value query, key, value, gradient, bias;
  double scale;
  std::optional<uint64_t> causalOffset;
  bool guarded;
};
} // namespace

static Parts partsOf(Operation *attention) {
  if (auto op = dyn_cast<nn::AttentionOp>(attention))
    return {op.getQuery(),        op.getKey(),    op.getValue(), {}, op.getBias(), op.getScale().convertToDouble(),
            op.getCausalOffset(), op.getGuarded()};
  auto op = cast<nn::AttentionGradOp>(attention);
  return {op.getQuery(),        op.getKey(),    op.getValue(),
          op.getGradient(),     op.getBias(),   op.getScale().convertToDouble(),
          op.getCausalOffset(), op.getGuarded()};
}

Value biasOf(Operation *attention) { return partsOf(attention).bias; }

std::optional<AttentionRegion> findAttentionRegion(nn::FusedOp region) {
  Operation *attention = nullptr;
  for (Operation &op : region.getBody().front())
    if (isAttention(&op)) {
      if (attention)
        return std::nullopt;
      attention = &op;
    }
  if (!attention || region.getInPlace())
    return std::nullopt;
  Parts parts = partsOf(attention);
  std::optional<AttentionTensor> query = findOperand(parts.query), key = findOperand(parts.key),
                                 value = findOperand(parts.value);
  if (!query || !key || !value)
    return std::nullopt;
  ArrayRef<int64_t> q = nn::shapeOf(parts.query), k = nn::shapeOf(parts.key);
  AttentionRegion found;
  found.op = attention;
  found.batch = q[0];
  found.groups = k[1];
  found.repeat = k[1] == 0 ? 1 : q[1] / k[1];
  found.queries = q[2];
  found.keys = k[2];
  found.depth = q[3];
  found.width = nn::shapeOf(parts.value)[3];
  found.query = *query;
  found.key = *key;
  found.value = *value;
  found.scale = parts.scale;
  found.guarded = parts.guarded;
  found.bias = parts.bias;
  if (parts.causalOffset)
    found.causalOffset = int64_t(*parts.causalOffset);
  if (parts.bias)
    found.biasTensor = findOperand(parts.bias);
  found.dropout = nn::dropoutOf(attention);
  if (parts.gradient && !(found.gradient = findOperand(parts.gradient)))
    return std::nullopt;
  for (Value result : attention->getResults()) {
    std::optional<AttentionTensor> place = findResult(result);
    if (!place)
      return std::nullopt;
    found.results.push_back(*place);
  }
  // Whatever else the region yields would have to be computed as well.
  if (region.getNumResults() != found.results.size())
    return std::nullopt;
  return found;
}

} // namespace hpc::kernels
