// Attention's draw is over its scores with groups and heads of a group apart, as the sharding rule has them: those are the
// factors that offsets are of.
#include "compiler/Dialect/NN/DropoutDraw.h"

namespace hpc::nn {

Value DropoutDraw::positionsOf(int64_t dim) const {
  for (auto [offset, of] : llvm::zip(offsets, offsetDims))
    if (of == dim && !shapeOf(offset).empty())
      return offset;
  return {};
}

/// The weights of a part: [batch, groups, repeat, queries, keys].
static std::array<int64_t, 5> weightsOf(ArrayRef<int64_t> query, ArrayRef<int64_t> key) {
  return {query[0], key[1], key[1] == 0 ? 1 : query[1] / key[1], query[2], key[2]};
}
constexpr int64_t queryDim = 3;

/// Operands that an attention draws by: step, seed, then offsets.
template <typename Op> static std::optional<DropoutDraw> ofAttention(Op op) {
  OperandRange random = op.getRandom();
  if (random.size() < 2 || !op.getSite() || !op.getRate())
    return std::nullopt;
  SmallVector<int64_t> whole(ArrayRef<int64_t>(weightsOf(shapeOf(op.getQuery()), shapeOf(op.getKey())))), dims;
  SmallVector<Value> offsets;
  if (op.getGlobalShape())
    whole = SmallVector<int64_t>(*op.getGlobalShape());
  if (op.getQueryPositions()) {
    offsets.push_back(op.getQueryPositions());
    dims.push_back(queryDim);
  }
  llvm::append_range(offsets, random.drop_front(2));
  if (op.getOffsetDims())
    llvm::append_range(dims, *op.getOffsetDims());
  return DropoutDraw{random[0], random[1], offsets, int64_t(*op.getSite()),
                     op.getRate()->convertToDouble(), whole, dims};
}

std::optional<DropoutDraw> dropoutOf(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return ofAttention(attention);
  if (auto attention = dyn_cast<AttentionGradOp>(op))
    return ofAttention(attention);
  auto dropout = dyn_cast<DropoutOp>(op);
  if (!dropout)
    return std::nullopt;
  SmallVector<int64_t> dims;
  if (dropout.getOffsetDims())
    dims = SmallVector<int64_t>(*dropout.getOffsetDims());
  return DropoutDraw{dropout.getStep(), dropout.getSeed(), SmallVector<Value>(dropout.getOffsets()),
                     int64_t(dropout.getSite()), dropout.getRate().convertToDouble(),
                     SmallVector<int64_t>(dropout.getWholeShape()), dims};
}

/// Positions are an operand of the attention itself.
template <typename Op> static void add(Op op, const DropoutDraw &draw) {
  SmallVector<Value> random = {draw.step, draw.seed};
  SmallVector<int64_t> dims;
  for (auto [offset, dim] : llvm::zip(draw.offsets, draw.offsetDims))
    if (shapeOf(offset).empty()) {
      random.push_back(offset);
      dims.push_back(dim);
    }
  op.getRandomMutable().assign(random);
  op.setSite(uint64_t(draw.site));
  op.setRate(APFloat(draw.rate));
  if (draw.offsets.empty() || ArrayRef<int64_t>(draw.wholeShape) == ArrayRef<int64_t>(weightsOf(shapeOf(op.getQuery()), shapeOf(op.getKey()))))
    return;
  op.setGlobalShape(draw.wholeShape);
  op.setOffsetDims(dims);
}

void addDropout(Operation *attention, const DropoutDraw &draw) {
  if (auto op = dyn_cast<AttentionOp>(attention))
    add(op, draw);
  else
    add(cast<AttentionGradOp>(attention), draw);
}

Value applyDropout(OpBuilder &builder, Location loc, Value value, const DropoutDraw &draw) {
  assert((draw.offsets.empty() || shapeOf(value).size() == draw.wholeShape.size()) && "offsets are of dims of the whole");
  auto op = DropoutOp::create(builder, loc, value, draw.step, draw.seed, draw.site, draw.rate);
  if (!draw.offsets.empty()) {
    op.getOffsetsMutable().assign(draw.offsets);
    op.setGlobalShape(draw.wholeShape);
    op.setOffsetDims(draw.offsetDims);
  }
  return op;
}

LogicalResult verifyDropout(Operation *op, const DropoutDraw &draw, ArrayRef<int64_t> part, std::array<const char *, 3> labels) {
  const int64_t rank = int64_t(part.size());
  if (!(draw.rate >= 0 && draw.rate < 1) || draw.site < 0 || draw.site > int64_t(UINT32_MAX))
    return op->emitOpError(labels[0]) << " rate " << draw.rate << " must be at least 0 and less than 1, site "
                                      << draw.site << " from 0 to 2^32 - 1";
  for (Value scalar : {draw.step, draw.seed})
    if (tensorType(scalar).getRank() != 0)
      return op->emitOpError(labels[1]) << " step and seed are one number each, got " << scalar.getType();
  bool fits = draw.offsetDims.size() == draw.offsets.size() && int64_t(draw.wholeShape.size()) == rank &&
              (op->getAttr("global_shape") || llvm::none_of(draw.offsets, [](Value offset) { return shapeOf(offset).empty(); })) &&
              llvm::all_of(draw.offsetDims, [&](int64_t dim) { return dim >= 0 && dim < rank; });
  for (auto [offset, dim] : llvm::zip(draw.offsets, draw.offsetDims))
    fits = fits && (shapeOf(offset).empty() || (shapeOf(offset) == part.slice(size_t(dim), 1) && tensorType(offset).getElementType().isInteger()));
  if (!fits)
    return op->emitOpError(labels[2]) << " " << draw.offsets.size() << " offsets, of dims [" << ArrayRef<int64_t>(draw.offsetDims)
                                      << "] of a whole tensor [" << ArrayRef<int64_t>(draw.wholeShape)
                                      << "], do not fit a tensor of rank " << rank;
  return success();
}

LogicalResult verifyAttentionDropout(Operation *attention) {
  constexpr const char *label = "(C5)";
  if (std::optional<DropoutDraw> draw = dropoutOf(attention))
    return verifyDropout(attention, *draw, weightsOf(shapeOf(attention->getOperand(0)), shapeOf(attention->getOperand(1))), {label, label, label});
  auto hasRandom = [](auto op) { return !op.getRandom().empty(); };
  auto forward = dyn_cast<AttentionOp>(attention);
  for (const char *name : {"site", "rate", "global_shape", "offset_dims"})
    if (attention->getAttr(name))
      return attention->emitOpError(label) << " '" << name << "' needs step and seed as `dropout` operands, site and rate";
  if (forward ? hasRandom(forward) : hasRandom(cast<AttentionGradOp>(attention)))
    return attention->emitOpError(label) << " `dropout` operands are step, seed and offsets, and need 'site' and 'rate'";
  return success();
}

static void addQueryStart(Operation *attention, Value start) {
  if (auto op = dyn_cast<AttentionOp>(attention))
    op.getQueryStartMutable().append(start);
  else
    cast<AttentionGradOp>(attention).getQueryStartMutable().append(start);
}

static bool hasQueryPositions(Operation *attention) {
  auto op = dyn_cast<AttentionOp>(attention);
  return bool(op ? op.getQueryPositions() : cast<AttentionGradOp>(attention).getQueryPositions());
}

Operation *localizeAttention(Operation *attention, OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                             ValueRange offsets) {
  OperationState state(attention->getLoc(), attention->getName(), operands, resultTypes, attention->getAttrs());
  Operation *local = builder.create(state);
  std::optional<DropoutDraw> draw = dropoutOf(attention), ofLocal = dropoutOf(local);
  // Queries are the last index unless their positions are given, and a dim that is cut is smaller than it was.
  const bool isPlaced = hasQueryPositions(attention);
  if (!isPlaced && local->hasAttr("causal_offset") && shapeOf(operands[0])[2] != shapeOf(attention->getOperand(0))[2])
    addQueryStart(local, offsets.back());
  if (!draw || (offsets.empty() && !isPlaced))
    return local;
  const Value positions = ofLocal->positionsOf(queryDim);
  ofLocal->wholeShape = draw->wholeShape;
  ofLocal->offsetDims.clear();
  for (auto [dim, size] : llvm::enumerate(weightsOf(shapeOf(operands[0]), shapeOf(operands[1]))))
    if (size != draw->wholeShape[dim] && !(isPlaced && dim == queryDim))
      ofLocal->offsetDims.push_back(int64_t(dim));
  assert(ofLocal->offsetDims.size() == offsets.size() && "an offset for every dim that is cut");
  ofLocal->offsets = SmallVector<Value>(offsets);
  if (isPlaced) {
    ofLocal->offsets.push_back(positions);
    ofLocal->offsetDims.push_back(queryDim);
  }
  addDropout(local, *ofLocal);
  return local;
}

} // namespace hpc::nn
