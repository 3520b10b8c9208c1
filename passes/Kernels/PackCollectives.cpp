// Collectives that gather, scatter or exchange parts of a box become raw collectives on contiguous blocks, with nn
// views around them. A part is always one sub-dim, so the views are always: reshape the box to its sub-dims, move the
// dim of ranks next to the sub-dim, merge.
#include "compiler/Diagnostics.h"
#include "passes/Kernels/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_PACKCOLLECTIVES
#include "passes/Kernels/Passes.h.inc"

namespace {
using dist::boxSize;
using Sizes = SmallVector<int64_t>;

/// The box of a sharding by sub-dims instead of dims.
struct SubDims {
  Sizes sizes;
  SmallVector<int64_t> firstOfDim; ///< position of each dim's first sub-dim

  SubDims(const dist::Sharding &sharding, const dist::Mesh &mesh) {
    for (const dist::DimSharding &dim : sharding.dims) {
      firstOfDim.push_back(int64_t(sizes.size()));
      for (const dist::SubDim &sub : dim)
        sizes.push_back(boxSize(sub, mesh));
    }
  }
  int64_t position(int64_t dim, int64_t sub) const { return firstOfDim[dim] + sub; }
};

/// Builds views of one collective, all with its location.
class Views {
public:
  Views(OpBuilder &builder, Location location, Type elementType)
      : builder(builder), location(location), elementType(elementType) {}

  RankedTensorType type(ArrayRef<int64_t> shape) const { return RankedTensorType::get(shape, elementType); }

  Value reshape(Value value, ArrayRef<int64_t> shape) {
    return nn::shapeOf(value) == shape ? value
                                       : nn::ReshapeOp::create(builder, location, type(shape), value).getResult();
  }
  /// Moves dim `from` to `to`; a reshape if the order of elements does not change.
  Value move(Value value, int64_t from, int64_t to) {
    auto dims = llvm::seq<int64_t>(nn::tensorType(value).getRank());
    Sizes order(dims.begin(), dims.end());
    order.erase(order.begin() + from);
    order.insert(order.begin() + to, from);
    Sizes shape, wide; // wide: the dims that are not of size 1
    for (int64_t dim : order) {
      shape.push_back(nn::shapeOf(value)[dim]);
      if (shape.back() != 1)
        wide.push_back(dim);
    }
    if (llvm::is_sorted(wide))
      return reshape(value, shape);
    return nn::TransposeOp::create(builder, location, type(shape), value, order);
  }
  /// The first `size` of a dim.
  Value shrink(Value value, int64_t dim, int64_t size) {
    Sizes shape(nn::shapeOf(value));
    if (shape[dim] == size)
      return value;
    shape[dim] = size;
    return nn::SliceOp::create(builder, location, type(shape), value, Sizes(shape.size(), 0), Sizes(shape.size(), 1));
  }
  /// Pads the end of a dim up to `size`; the padding is never read.
  Value grow(Value value, int64_t dim, int64_t size) {
    Sizes shape(nn::shapeOf(value)), low(shape.size(), 0), high(shape.size(), 0);
    if (shape[dim] == size)
      return value;
    high[dim] = size - shape[dim];
    shape[dim] = size;
    return nn::PadOp::create(builder, location, type(shape), value, low, high, builder.getZeroAttr(elementType));
  }
  /// [..., size, ...] -> [ranks, ..., block, ...]: one block of `position` per rank in front.
  Value splitOff(Value value, int64_t position, int64_t ranks, int64_t block) {
    value = grow(value, position, ranks * block);
    Sizes shape(nn::shapeOf(value));
    shape[position] = block;
    shape.insert(shape.begin() + position, ranks);
    return move(reshape(value, shape), position, 0);
  }
  /// The inverse, of which `size` remain.
  Value mergeIn(Value value, int64_t position, int64_t size) {
    value = move(value, 0, position);
    Sizes shape(nn::shapeOf(value));
    shape[position] *= shape[position + 1];
    shape.erase(shape.begin() + position + 1);
    return shrink(reshape(value, shape), position, size);
  }

private:
  OpBuilder &builder;
  Location location;
  Type elementType;
};

Sizes withRanks(int64_t ranks, ArrayRef<int64_t> sizes) {
  Sizes shape{ranks};
  shape.append(sizes.begin(), sizes.end());
  return shape;
}

/// The op that works on contiguous blocks, in place of the step.
Operation *makeRaw(OpBuilder &builder, CollectiveOpInterface op, Type type, Value blocks) {
  Location loc = op->getLoc();
  auto axis = builder.getStringAttr(op.getGroup()[0]);
  switch (op.getCollectiveKind()) {
  case dist::ReshardStep::AllGather:
    return dist::RawAllGatherOp::create(builder, loc, type, blocks, axis, op.getCauseAttr(), op.getAvoidAttr());
  case dist::ReshardStep::ReduceScatter:
    return dist::RawReduceScatterOp::create(builder, loc, type, blocks, axis, op.getCauseAttr(), op.getAvoidAttr());
  default:
    return dist::RawAllToAllOp::create(builder, loc, type, blocks, axis, op.getCauseAttr(), op.getAvoidAttr());
  }
}

/// The rebuilt value takes the old result's place and type. A gather has no blocks to split off, a scatter none to merge.
void pack(CollectiveOpInterface op) {
  const dist::ReshardStep step = *op.getStep();
  const dist::Mesh mesh = dist::meshOf(op);
  OpBuilder builder(op.getOperation());
  Value value = op->getOperand(0), result = op->getResult(0);
  Views views(builder, op->getLoc(), nn::tensorType(result).getElementType());
  const SubDims before(step.before, mesh), after(step.after, mesh);
  const int64_t ranks = mesh.size(step.axes[0]);
  const bool splits = step.toDim >= 0, merges = step.fromDim >= 0;
  if (splits) {
    int64_t to = after.position(step.toDim, step.toSub);
    value = views.splitOff(views.reshape(value, before.sizes), to, ranks, after.sizes[to]);
    if (!merges)
      value = views.reshape(value, withRanks(ranks, nn::shapeOf(result)));
  }
  Sizes shape = !merges ? Sizes(nn::shapeOf(result)) : splits ? Sizes(nn::shapeOf(value)) : withRanks(ranks, nn::shapeOf(value));
  value = makeRaw(builder, op, views.type(shape), value)->getResult(0);
  if (merges) {
    int64_t from = before.position(step.fromDim, step.fromSub);
    if (!splits)
      value = views.reshape(value, withRanks(ranks, before.sizes));
    value = views.reshape(views.mergeIn(value, from, after.sizes[from]), nn::shapeOf(result));
  }
  // The last op restores the encoding.
  if (nn::shapeOf(value) == nn::shapeOf(result))
    value.setType(result.getType());
  else
    value = nn::ReshapeOp::create(builder, op->getLoc(), result.getType(), value);
  result.replaceAllUsesWith(value);
  op->erase();
}

/// The steps of a reshard split their sub-dims alike on both sides.
LogicalResult checkSubDims(Operation *op, const dist::ReshardStep &step) {
  for (auto [a, b] : llvm::zip_equal(step.before.dims, step.after.dims))
    if (!llvm::equal(a, b, [](const dist::SubDim &x, const dist::SubDim &y) { return x.size == y.size; }))
      return userError(op, ErrorKind::Internal) << "the sub-dims of " << dist::toString(step.before) << " and "
                                                << dist::toString(step.after) << " differ; split both alike";
  return success();
}

struct PackCollectivesPass : impl::PackCollectivesBase<PackCollectivesPass> {
  void runOnOperation() override {
    SmallVector<CollectiveOpInterface> collectives;
    getOperation().walk([&](CollectiveOpInterface op) {
      if (std::optional<dist::ReshardStep> step = op.getStep(); step && crossesRanks(op) && (step->fromDim >= 0 || step->toDim >= 0))
        collectives.push_back(op);
    });
    for (CollectiveOpInterface op : collectives) {
      if (failed(checkSubDims(op, *op.getStep())))
        return signalPassFailure();
      pack(op);
    }
  }
};
} // namespace
} // namespace hpc
