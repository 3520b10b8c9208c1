// Pass hpc-ring-attention: attention whose keys and values are gathered over an axis of sequence takes them block by
// block from its neighbour instead. Liu et al. 2023 (Ring Attention, arXiv 2310.01889); results of blocks are joined by their log_sum.
//
//   step s of c:  rank r has the keys of rank r + s (mod c)         the gradient of these keys, from rank r - 1 on
//     attention of own queries with them, carried on                  comes from rank r + 1, gets this rank's part,
//     their neighbour's keys arrive meanwhile                         and goes on until it is at home
//
// In zigzag a block is in two pieces, each of positions that follow one another: an attention for each.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/DropoutDraw.h"
#include "compiler/Location.h"
#include "passes/Partition/Passes.h"
#include "passes/Partition/RingKeys.h"

#include <limits>

namespace hpc {
#define GEN_PASS_DEF_RINGATTENTION
#include "passes/Partition/Passes.h.inc"

using namespace dist;

namespace {
/// A value before its padding was filled.
Value unfilled(Value value) {
  auto fill = value ? value.getDefiningOp<FillTailOp>() : FillTailOp();
  return fill ? fill.getOperand() : value;
}

/// Values that forward has made for the gradient of the same queries and keys.
struct Forward {
  nn::AttentionOp op;
  Value query, key, value; ///< before padding was filled; keys and values before they were gathered
  Value result, logSum;
};

/// The parts of one attention, or of its gradient.
class RingBuilder {
public:
  RingBuilder(Operation *op, SharedKeys keys, SharedKeys values, const Mesh &mesh)
      : builder(op), loc(op->getLoc()), mesh(mesh), keys(keys.gather), values(values.gather), axis(keys.gather.getAxis().str()),
        ranks(mesh.size(axis)), rows(keys.gather.getBefore().getValue().dims[positionsDim].front()),
        pieces(keyPieces(keys.positions(), boxSize(rows, mesh), ranks)), inOrder(!keys.order) {}

  Forward emit(nn::AttentionOp op, bool trains) {
    Type wide = wideType(op.getQuery());
    RankedTensorType type = nn::tensorType(op.getResult());
    block = {fill(keys.getOperand()), fill(values.getOperand())};
    Value result, logSum;
    for (int64_t step = 0; step < ranks; ++step) {
      Block now = block;
      if (step < ranks - 1)
        exchange(); // under way while the block at hand is computed
      for (const KeyPiece &piece : pieces) {
        const bool isLast = step == ranks - 1 && &piece == &pieces.back();
        SmallVector<Type> types = {isLast ? type : withElement(type, wide)};
        if (!isLast || trains)
          types.push_back(numbersType(type, wide, 2));
        auto part = partOf(op, types, now, piece, step);
        if (isLast)
          setValueIds(part, valueIdsOf(op));
        if (result)
          part.getCarriedMutable().assign(ValueRange{result, logSum});
        result = part.getResult();
        logSum = part.getLogSum();
      }
    }
    op.getResult().replaceAllUsesWith(result);
    return {op, unfilled(op.getQuery()), keys.getOperand(), values.getOperand(), result, logSum};
  }

  void emit(nn::AttentionGradOp op, const Forward &forward, std::array<ReduceScatterOp, 2> scatters) {
    Type wide = wideType(op.getQuery());
    RankedTensorType type = nn::tensorType(op.getQueryGradient());
    // 1. What is of all keys: the log_sum, and of each query the sum of its result's gradient times the result.
    Value result = converted(forward.result, wide), gradient = converted(op.getGradient(), wide), logSum = fill(forward.logSum);
    Value product = typed(nn::MulOp::create(builder, loc, gradient, result), withElement(nn::tensorType(result), wide));
    Value sums = fill(typed(nn::ReduceOp::create(builder, loc, ReduceKind::Sum, product, {3}), numbersType(nn::tensorType(result), wide, 1)));
    // 2. A block after the other. Gradients of the first one's keys are at home already.
    block = {fill(keys.getOperand()), fill(values.getOperand())};
    std::array<Value, 2> own, moving;
    Value ofQuery;
    for (int64_t step = 0; step < ranks; ++step) {
      Block now = block;
      if (step < ranks - 1)
        exchange();
      if (step > 1)
        for (auto [value, scatter] : llvm::zip(moving, scatters))
          if (value)
            value = moved(value, nn::tensorType(value), scatter);
      std::array<SmallVector<Value>, 2> ofKeys;
      for (const KeyPiece &piece : pieces) {
        SmallVector<Type> types = {withElement(type, wide)};
        for (Value keyGradient : {op.getKeyGradient(), op.getValueGradient()})
          types.push_back(pieceType(blockType(nn::tensorType(keyGradient)), piece));
        auto part = partOf(op, types, now, piece, step);
        part.getWholeMutable().assign(ValueRange{logSum, sums});
        ofQuery = ofQuery ? added(ofQuery, part.getQueryGradient(), types[0]) : Value(part.getQueryGradient());
        for (size_t i = 0; i < 2; ++i)
          ofKeys[i].push_back(part->getResult(unsigned(i + 1)));
      }
      for (size_t i = 0; i < 2; ++i)
        if (scatters[i]) {
          Value ofBlock = joined(ofKeys[i], blockType(nn::tensorType(op->getResult(unsigned(i + 1)))));
          (step == 0 ? own : moving)[i] = step > 1 ? added(moving[i], ofBlock, ofBlock.getType()) : ofBlock;
        }
    }
    // 3. The last hop home.
    for (size_t i = 0; i < 2; ++i)
      if (ReduceScatterOp scatter = scatters[i]) {
        Value whole = added(own[i], moved(moving[i], nn::tensorType(moving[i]), scatter), scatter.getResult().getType());
        setValueIds(whole.getDefiningOp(), valueIdsOf(scatter));
        scatter.getResult().replaceAllUsesWith(whole);
        scatter.erase();
      }
    ofQuery = converted(ofQuery, type.getElementType());
    op.getQueryGradient().replaceAllUsesWith(typed(ofQuery.getDefiningOp(), type));
  }

private:
  struct Block {
    Value key, value;
  };

  // ---- types ------------------------------------------------------------------------------------

  static Type wideType(Value query) {
    Type element = nn::tensorType(query).getElementType();
    return element.isF16() || element.isBF16() ? Float32Type::get(element.getContext()) : element;
  }
  static RankedTensorType withElement(RankedTensorType type, Type element) {
    return RankedTensorType::get(type.getShape(), element, type.getEncoding());
  }
  /// `numbers` for each query.
  static RankedTensorType numbersType(RankedTensorType type, Type element, int64_t numbers) {
    Sharding sharding = shardingAttrOf(type).getValue();
    SmallVector<int64_t> shape(type.getShape());
    sharding.dims.back() = numbers == 1 ? DimSharding() : DimSharding{{numbers, {}}};
    shape.back() = numbers;
    return dist::withSharding(RankedTensorType::get(shape, element), sharding);
  }
  /// The type of a block of a tensor of keys: what every rank has is its own, so nothing cuts it over the ring, nor is it a term of a sum there.
  RankedTensorType blockType(RankedTensorType type) const {
    Sharding sharding = shardingAttrOf(type).getValue();
    const int64_t box = boxSize(rows, mesh);
    SmallVector<int64_t> shape(type.getShape());
    shape[positionsDim] = box;
    sharding.dims[positionsDim] = box == 1 ? DimSharding() : DimSharding{{box, {}}};
    llvm::erase(sharding.partial, axis);
    return dist::withSharding(RankedTensorType::get(shape, type.getElementType()), normalize(sharding, mesh));
  }
  RankedTensorType pieceType(RankedTensorType type, const KeyPiece &piece) const {
    if (pieces.size() == 1)
      return type;
    Sharding sharding = shardingAttrOf(type).getValue();
    const int64_t size = piece.end - piece.begin;
    SmallVector<int64_t> shape(type.getShape());
    shape[positionsDim] = size;
    sharding.dims[positionsDim] = size == 1 ? DimSharding() : DimSharding{{size, {}}};
    return dist::withSharding(RankedTensorType::get(shape, type.getElementType()), sharding);
  }

  // ---- small ops --------------------------------------------------------------------------------

  static Value typed(Operation *op, Type type) {
    op->getResult(0).setType(cast<RankedTensorType>(type));
    return op->getResult(0);
  }
  Value added(Value a, Value b, Type type) { return typed(nn::AddOp::create(builder, loc, a, b), type); }
  Value converted(Value value, Type element) {
    if (nn::tensorType(value).getElementType() == element)
      return value;
    return nn::CastOp::create(builder, loc, withElement(nn::tensorType(value), element), value);
  }
  /// Zeros in place of what no rank holds, which sums would read.
  Value fill(Value value) {
    RankedTensorType type = nn::tensorType(value);
    Sharding sharding = shardingAttrOf(value).getValue();
    SmallVector<int64_t> padded;
    for (auto [dim, cut] : llvm::enumerate(sharding.dims))
      if (hasPadding(cut, mesh))
        padded.push_back(int64_t(dim));
    if (padded.empty())
      return value;
    return FillTailOp::create(builder, loc, type, value, padded, builder.getZeroAttr(type.getElementType()));
  }
  Value moved(Value value, RankedTensorType type, CollectiveOpInterface instead) {
    return RawPermuteOp::create(builder, loc, type, value, builder.getStringAttr(axis), instead.getCauseAttr(), instead.getAvoidAttr(),
                                builder.getI64IntegerAttr(1), StringAttr());
  }
  Value constant(RankedTensorType type, Attribute number) {
    auto op = nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, number));
    return typed(op, dist::withSharding(type, replicated(type.getShape().vec())));
  }

  // ---- blocks -----------------------------------------------------------------------------------

  /// Each rank gets the block that the next one has.
  void exchange() {
    block.key = moved(block.key, blockType(nn::tensorType(block.key)), keys);
    block.value = moved(block.value, blockType(nn::tensorType(block.value)), values);
  }

  Value pieceOf(Value value, const KeyPiece &piece) {
    if (pieces.size() == 1)
      return value;
    SmallVector<int64_t> starts(nn::shapeOf(value).size(), 0), steps(starts.size(), 1);
    starts[positionsDim] = piece.begin;
    return nn::SliceOp::create(builder, loc, pieceType(nn::tensorType(value), piece), value, starts, steps);
  }
  /// The part of a mask, which has all keys in the order of positions, for a piece whose first key is at `first`.
  Value maskOf(Value mask, const KeyPiece &piece, Value first) {
    constexpr unsigned keysDim = 3;
    if (!mask || nn::shapeOf(mask)[keysDim] == 1)
      return mask;
    Type i64 = builder.getI64Type();
    const int64_t size = piece.end - piece.begin;
    auto positions = dist::withSharding(RankedTensorType::get({size}, i64), replicated({size}));
    Value last = constant(RankedTensorType::get({}, i64), builder.getI64IntegerAttr(rows.size - 1)); // in place of padding
    Value at = typed(nn::MinOp::create(builder, loc, nn::IotaOp::create(builder, loc, positions, first, 0, 0, 1), last), positions);
    RankedTensorType type = nn::tensorType(mask);
    Sharding sharding = shardingAttrOf(mask).getValue();
    SmallVector<int64_t> shape(type.getShape());
    shape[keysDim] = size;
    sharding.dims[keysDim] = shardingOf(at).dims[0];
    return nn::GatherOp::create(builder, loc, dist::withSharding(RankedTensorType::get(shape, type.getElementType()), sharding), mask, at, keysDim);
  }
  Value joined(ValueRange ofPieces, RankedTensorType type) {
    return ofPieces.size() == 1 ? ofPieces.front() : nn::ConcatOp::create(builder, loc, type, ofPieces, positionsDim).getResult();
  }

  /// The first index that the rank `step` further has of a dim cut so.
  Value offset(const SubDim &dim, int64_t step) {
    return OffsetOp::create(builder, loc, dist::withSharding(RankedTensorType::get({}, builder.getI64Type()), Sharding()),
                            ShardingAttr::get(builder.getContext(), Sharding{{{dim}}, {}}), step);
  }
  /// The position of the first key of a piece of the block that is at hand at `step`.
  Value positionOf(const KeyPiece &piece, int64_t step) {
    if (inOrder)
      return offset(rows, step);
    Type i64 = builder.getI64Type();
    auto type = RankedTensorType::get({ranks}, i64);
    auto table = nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, ArrayRef(piece.starts)));
    Value starts = typed(table, dist::withSharding(type, replicated({ranks})));
    return nn::GatherOp::create(builder, loc, dist::withSharding(RankedTensorType::get({}, i64), Sharding()), starts,
                                offset({ranks, {axis}}, step), 0);
  }

  /// The op for the keys of a piece alone.
  template <typename Op> Op partOf(Op op, TypeRange types, const Block &now, const KeyPiece &piece, int64_t step) {
    const bool readsPositions = op.getCausalOffset() || !op.getRandom().empty() || op.getBias() || op.getVisible();
    Value first = readsPositions ? positionOf(piece, step) : Value(), key = pieceOf(now.key, piece), value = pieceOf(now.value, piece),
          bias = maskOf(op.getBias(), piece, first), visible = maskOf(op.getVisible(), piece, first);
    // A query's own start is the last; any other number is the user's, and where its keys end is known at run time alone.
    const bool seesNoPadding = op.getCausalOffset() && int64_t(*op.getCausalOffset()) <= 0 && op.getKeyStart().empty() &&
                               op.getQueryStart().size() <= 1 && (inOrder ? !op.getQueryPositions() : !piece.isBroken);
    if (!seesNoPadding && hasPadding({rows}, mesh))
      bias = hidePadding(bias, offset(rows, step), piece, wideType(op.getQuery()));
    OperationState state(loc, op->getName(), op->getOperands(), types, op->getAttrs());
    auto part = llvm::cast<Op>(builder.create(state));
    part->removeAttr(globalAttrsName);
    setValueIds(part, {});
    part.getKeyMutable().assign(key);
    part.getValueMutable().assign(value);
    if (bias)
      part.getBiasMutable().assign(bias);
    if (visible)
      part.getVisibleMutable().assign(visible);
    if (part.getCausalOffset())
      part.getKeyStartMutable().append(first);
    if (std::optional<nn::DropoutDraw> draw = nn::dropoutOf(part)) {
      draw->wholeShape[4] = rows.size;
      draw->offsets.push_back(first);
      draw->offsetDims.push_back(4);
      nn::addDropout(part, *draw);
    }
    return part;
  }
  /// -inf for keys after the last one, in a piece of the block whose first row is `first`.
  Value hidePadding(Value bias, Value first, const KeyPiece &piece, Type wide) {
    auto typeOf = [&](ArrayRef<int64_t> shape, Type element) {
      return dist::withSharding(RankedTensorType::get(shape, element), replicated(shape.vec()));
    };
    SmallVector<int64_t> ofKeys = {1, 1, 1, piece.end - piece.begin};
    Type i64 = builder.getI64Type();
    Value row = nn::IotaOp::create(builder, loc, typeOf(ofKeys, i64), first, 3, piece.begin, 1);
    Value end = constant(RankedTensorType::get({}, i64), builder.getI64IntegerAttr(rows.size));
    Value isKey = typed(nn::CompareOp::create(builder, loc, nn::ComparePredicate::lt, row, end), typeOf(ofKeys, builder.getI1Type()));
    auto number = [&](double value) { return constant(RankedTensorType::get({}, wide), builder.getFloatAttr(wide, value)); };
    Value shown = bias ? converted(bias, wide) : number(0);
    SmallVector<int64_t> shape = ofKeys;
    RankedTensorType type = typeOf(ofKeys, wide);
    if (bias) {
      Sharding sharding = shardingOf(bias);
      shape = SmallVector<int64_t>(nn::shapeOf(bias));
      shape[3] = ofKeys[3];
      sharding.dims[3] = shardingOf(isKey).dims[3];
      type = dist::withSharding(RankedTensorType::get(shape, wide), sharding);
    }
    return typed(nn::SelectOp::create(builder, loc, isKey, shown, number(-std::numeric_limits<double>::infinity())), type);
  }

  OpBuilder builder;
  Location loc;
  const Mesh &mesh;
  AllGatherOp keys, values;
  std::string axis;
  int64_t ranks;
  SubDim rows; ///< of the keys, as they are cut before the gather
  SmallVector<KeyPiece> pieces;
  bool inOrder; ///< rows are in the order of positions
  Block block;      ///< the one that has arrived last
};

/// Whether the attributes and masks of a gradient are those of an attention.
bool isGradientOf(nn::AttentionGradOp gradient, const Forward &forward, SharedKeys keys, SharedKeys values) {
  nn::AttentionOp op = forward.op;
  return unfilled(gradient.getQuery()) == forward.query && keys.gather.getOperand() == forward.key && values.gather.getOperand() == forward.value &&
         unfilled(gradient.getBias()) == unfilled(op.getBias()) && unfilled(gradient.getVisible()) == unfilled(op.getVisible()) && gradient.getScale() == op.getScale() &&
         gradient.getCausalOffset() == op.getCausalOffset() && gradient.getGuarded() == op.getGuarded() &&
         unfilled(gradient.getQueryPositions()) == unfilled(op.getQueryPositions()) && gradient.getHiddenAttr() == op.getHiddenAttr() && gradient.getSite() == op.getSite() &&
         llvm::equal(gradient.getKeyStart(), op.getKeyStart());
}

class Rings {
public:
  Rings(func::FuncOp function) : function(function), mesh(meshOf(function)) {}

  LogicalResult run() {
    SmallVector<Operation *> attentions;
    for (Operation &op : function.front())
      if (isa<nn::AttentionOp, nn::AttentionGradOp>(op))
        attentions.push_back(&op);
    const bool trains = llvm::any_of(attentions, llvm::IsaPred<nn::AttentionGradOp>);
    for (Operation *op : attentions) {
      auto forward = dyn_cast<nn::AttentionOp>(op);
      if (failed(forward ? rewrite(forward, trains) : rewrite(cast<nn::AttentionGradOp>(op))))
        return failure();
    }
    // Erase what nothing reads any more, once no gradient asks for it.
    for (Operation *op : llvm::reverse(replaced))
      op->erase();
    for (Operation *op : readers)
      if (op->use_empty())
        op->erase();
    for (Operation *op : gathers)
      if (op->use_empty())
        op->erase();
    return success();
  }

private:
  InFlightDiagnostic refuse(Operation *op, const Twine &reason) {
    return userError(op, ErrorKind::Unsupported) << "--cp-mode=ring: " << describeOp(op) << " " << reason << "; use --cp-mode=gather";
  }

  /// Keys and values; none where no rank needs keys of others for its queries.
  template <typename Op> FailureOr<std::array<SharedKeys, 2>> findKeys(Op op) {
    std::array<SharedKeys, 2> found = {SharedKeys::of(op.getKey(), mesh), SharedKeys::of(op.getValue(), mesh)};
    const SharedKeys &any = found[0] ? found[0] : found[1];
    if (!any || !llvm::is_contained(axesOf(shardingOf(op.getQuery()).dims[positionsDim]), AllGatherOp(any.gather).getAxis()))
      return std::array<SharedKeys, 2>();
    if (!found[0].isLike(found[1]))
      return refuse(op, "has keys and values that are not cut alike");
    for (const SharedKeys &keys : found) {
      gathers.insert(keys.gather);
      if (keys.order)
        readers.insert(keys.order);
    }
    return found;
  }

  LogicalResult rewrite(nn::AttentionOp op, bool trains) {
    auto found = findKeys(op);
    if (failed(found) || !(*found)[0])
      return failure(failed(found));
    done.push_back(RingBuilder(op, (*found)[0], (*found)[1], mesh).emit(op, trains));
    replaced.push_back(op);
    return success();
  }

  /// The scatter of a gradient of keys, in the order in which ranks have them; null where it is not that.
  ReduceScatterOp scatterOf(Value gradient, const SharedKeys &keys) {
    if (keys.order) {
      auto order = gradient.hasOneUse() ? dyn_cast<nn::GatherOp>(*gradient.user_begin()) : nn::GatherOp();
      if (!order || order.getAxis() != positionsDim)
        return {};
      replaced.push_back(order);
      gradient = order.getResult();
    }
    auto scatter = gradient.hasOneUse() ? dyn_cast<ReduceScatterOp>(*gradient.user_begin()) : ReduceScatterOp();
    const bool isAlike = scatter && scatter.getAxis() == AllGatherOp(keys.gather).getAxis() && scatter.getToDim() == positionsDim;
    return isAlike ? scatter : ReduceScatterOp();
  }

  LogicalResult rewrite(nn::AttentionGradOp op) {
    auto found = findKeys(op);
    if (failed(found) || !(*found)[0])
      return failure(failed(found));
    SharedKeys keys = (*found)[0], values = (*found)[1];
    auto forward = llvm::find_if(done, [&](const Forward &each) { return isGradientOf(op, each, keys, values); });
    if (forward == done.end())
      return refuse(op, "is the gradient of an attention that is not in the step");
    replaced.push_back(op);
    std::array<ReduceScatterOp, 2> scatters;
    for (auto [scatter, gradient] : llvm::zip(scatters, ValueRange{op.getKeyGradient(), op.getValueGradient()}))
      if (!gradient.use_empty() && !(scatter = scatterOf(gradient, keys)))
        return refuse(op, "gives gradients of keys that are not cut as the keys are");
    RingBuilder(op, keys, values, mesh).emit(op, *forward, scatters);
    return success();
  }

  func::FuncOp function;
  Mesh mesh;
  SmallVector<Forward> done;
  SmallVector<Operation *> replaced;
  llvm::SetVector<Operation *> readers, gathers; ///< readers: of gathers, that bring rows in order
};

struct RingAttention : impl::RingAttentionBase<RingAttention> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (function && failed(Rings(function).run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace hpc
