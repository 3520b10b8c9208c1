// Recognizes regions of attention: operands are followed up through views to the region's arguments, results down to
// the yielded values.
#include "passes/Kernels/Regions/AttentionRegion.h"

#include "passes/Kernels/Regions/KeyConcat.h"
#include "passes/Kernels/Regions/StridedView.h"

namespace hpc::kernels {

bool isAttention(Operation *op) { return isa<nn::AttentionOp, nn::AttentionGradOp>(op); }

bool isPartOfKeys(Operation *attention) {
  if (auto op = dyn_cast<nn::AttentionOp>(attention))
    return op.getLogSum() || !op.getCarried().empty();
  return !cast<nn::AttentionGradOp>(attention).getWhole().empty();
}

bool fitsAttentionKernel(Operation *attention) {
  constexpr int64_t maxChannels = 512; // of 32 queries and 96 keys at a time, in f64: a gradient holds the most of them
  return std::max(nn::shapeOf(attention->getOperand(0))[3], nn::shapeOf(attention->getOperand(2))[3]) <= maxChannels;
}

bool hasFewQueries(Operation *attention) {
  constexpr int64_t most = 8;
  if (!isa<nn::AttentionOp>(attention))
    return false;
  ArrayRef<int64_t> query = nn::shapeOf(attention->getOperand(0)), key = nn::shapeOf(attention->getOperand(1));
  int64_t repeat = key[1] == 0 ? 1 : query[1] / key[1];
  return query[2] > 0 && query[2] <= most && repeat <= most && query[2] * repeat <= most;
}

static Type elementTypeOf(Value value) { return nn::tensorType(value).getElementType(); }

/// The operand, or the result of `concat` of which it is a part, as part of one of the region's arguments.
static std::optional<AttentionTensor> findOperand(Value value, const KeyConcat *concat = nullptr) {
  SmallVector<Operation *> views;
  Value source = value;
  for (; source.getDefiningOp(); source = source.getDefiningOp()->getOperand(0)) {
    if (source.getDefiningOp()->getNumOperands() != 1)
      return std::nullopt;
    views.push_back(source.getDefiningOp());
  }
  SmallVector<Type, 2> casts;
  StridedView view(nn::shapeOf(source));
  for (Operation *op : llvm::reverse(views))
    if (isFloatCast(op))
      casts.push_back(elementTypeOf(op->getResult(0)));
    else if (!applyView(op, view))
      return std::nullopt;
  if (concat) {
    if (!concat->apply(view, value))
      return std::nullopt;
    for (Operation *op : concat->behind)
      if (isFloatCast(op))
        casts.push_back(elementTypeOf(op->getResult(0)));
  }
  std::optional<SmallVector<int64_t>> strides = view.strides();
  if (!strides || strides->size() != 4)
    return std::nullopt;
  return AttentionTensor{cast<BlockArgument>(source).getArgNumber(),
                         view.offset(),
                         {(*strides)[0], (*strides)[1], (*strides)[2], (*strides)[3]},
                         elementTypeOf(source),
                         casts};
}

/// The same, only if elements are read without casts.
static std::optional<AttentionTensor> findPlainOperand(Value value) {
  std::optional<AttentionTensor> tensor = findOperand(value);
  return tensor && tensor->casts.empty() ? tensor : std::nullopt;
}

namespace {
/// Keys, or values, up to key `end`.
struct Part {
  int64_t end;
  AttentionTensor tensor;
};
} // namespace

/// A key's or value's parts, in order; positions are numbers among all keys. None where it is something else.
static SmallVector<Part> findParts(Value operand) {
  std::optional<KeyConcat> concat = findKeyConcat(operand);
  if (!concat) {
    std::optional<AttentionTensor> whole = findOperand(operand);
    return whole ? SmallVector<Part>{{nn::shapeOf(operand)[2], *whole}} : SmallVector<Part>();
  }
  SmallVector<Part> parts;
  int64_t first = 0;
  for (Value value : concat->op.getOperands()) {
    int64_t count = concat->countKeys(value);
    if (count == 0)
      continue;
    std::optional<AttentionTensor> tensor = findOperand(value, &*concat);
    if (!tensor)
      return {};
    tensor->offset -= first * tensor->strides[2];
    parts.push_back({first += count, *tensor});
  }
  return parts;
}

/// Keys and values need not be cut at the same places.
static SmallVector<AttentionKeys, 2> joinParts(ArrayRef<Part> keys, ArrayRef<Part> values) {
  SmallVector<AttentionKeys, 2> parts;
  for (int64_t first = 0; !keys.empty() && !values.empty(); first = parts.back().end) {
    int64_t end = std::min(keys.front().end, values.front().end);
    parts.push_back({first, end, keys.front().tensor, values.front().tensor});
    keys = keys.drop_while([&](const Part &part) { return part.end == end; });
    values = values.drop_while([&](const Part &part) { return part.end == end; });
  }
  return parts;
}

/// The op's result as a yielded value: through its only readers, which are views that lose and repeat nothing.
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
struct Operands {
  Value query, key, value, gradient, bias, visible;
  OperandRange elsewhere;
  double scale, hidden;
  std::optional<uint64_t> causalOffset;
  bool guarded;
  OperandRange queryStart, keyStart;
  Value queryPositions;
};
} // namespace

template <typename Op> static Operands operandsOf(Op op, Value gradient, OperandRange elsewhere) {
  return {op.getQuery(),
          op.getKey(),
          op.getValue(),
          gradient,
          op.getBias(),
          op.getVisible(),
          elsewhere,
          op.getScale().convertToDouble(),
          op.getHidden().value_or(llvm::APFloat(0.0)).convertToDouble(),
          op.getCausalOffset(),
          op.getGuarded(),
          op.getQueryStart(),
          op.getKeyStart(),
          op.getQueryPositions()};
}
static Operands operandsOf(Operation *attention) {
  if (auto op = dyn_cast<nn::AttentionOp>(attention))
    return operandsOf(op, {}, op.getCarried());
  auto op = cast<nn::AttentionGradOp>(attention);
  return operandsOf(op, op.getGradient(), op.getWhole());
}

SmallVector<Value, 2> masksOf(Operation *attention) {
  Operands operands = operandsOf(attention);
  SmallVector<Value, 2> masks;
  for (Value mask : {operands.bias, operands.visible})
    if (mask)
      masks.push_back(mask);
  return masks;
}

/// Moves a start that is a constant into `offset`; others become numbers of the region.
static void addStarts(OperandRange starts, int64_t sign, int64_t &offset, SmallVectorImpl<Value> &moving) {
  for (Value start : starts) {
    auto constant = start.getDefiningOp<nn::ConstantOp>();
    auto value = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
    if (!value) {
      moving.push_back(start);
      continue;
    }
    Attribute number = value.getSplatValue<Attribute>();
    auto real = dyn_cast<FloatAttr>(number);
    offset += sign * (real ? int64_t(real.getValueAsDouble()) : cast<IntegerAttr>(number).getValue().getSExtValue());
  }
}

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
  Operands operands = operandsOf(attention);
  std::optional<AttentionTensor> query = findPlainOperand(operands.query);
  SmallVector<AttentionKeys, 2> keys = joinParts(findParts(operands.key), findParts(operands.value));
  if (!query || keys.empty())
    return std::nullopt;
  const AttentionKeys &first = keys.front();
  if (operands.gradient && (keys.size() > 1 || !first.key.casts.empty() || !first.value.casts.empty()))
    return std::nullopt;
  ArrayRef<int64_t> q = nn::shapeOf(operands.query), k = nn::shapeOf(operands.key);
  AttentionRegion found;
  found.op = attention;
  found.batch = q[0];
  found.groups = k[1];
  found.repeat = k[1] == 0 ? 1 : q[1] / k[1];
  found.queries = q[2];
  found.keys = k[2];
  found.depth = q[3];
  found.width = nn::shapeOf(operands.value)[3];
  found.query = *query;
  found.parts = std::move(keys);
  found.scale = operands.scale;
  found.hidden = operands.hidden;
  found.guarded = operands.guarded;
  found.bias = operands.bias;
  found.visible = operands.visible;
  found.queryPositions = operands.queryPositions;
  if (operands.causalOffset) {
    found.causalOffset = int64_t(*operands.causalOffset);
    addStarts(operands.queryStart, 1, *found.causalOffset, found.queryStart);
    addStarts(operands.keyStart, -1, *found.causalOffset, found.keyStart);
  }
  if (operands.bias)
    found.biasTensor = findPlainOperand(operands.bias);
  found.dropout = nn::dropoutOf(attention);
  if (operands.gradient && !(found.gradient = findPlainOperand(operands.gradient)))
    return std::nullopt;
  for (Value value : operands.elsewhere) {
    std::optional<AttentionTensor> place = findPlainOperand(value);
    if (!place)
      return std::nullopt;
    found.elsewhere.push_back(*place);
  }
  for (Value result : attention->getResults()) {
    std::optional<AttentionTensor> place = findResult(result);
    if (!place)
      return std::nullopt;
    found.results.push_back(*place);
  }
  // Any other yielded value would have to be computed as well.
  if (region.getNumResults() != found.results.size())
    return std::nullopt;
  return found;
}

} // namespace hpc::kernels
