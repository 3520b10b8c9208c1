// Collectives that gather, scatter or exchange parts of a box become raw collectives on contiguous blocks, with nn
// views round them. A part is always one sub-dim, so every view is: see the box by its sub-dims, move the dim of ranks
// next to the sub-dim, merge.
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
  /// The dim `from` becomes dim `to`; a reshape when nothing changes places.
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
  /// Padding behind a dim up to `size`; its content is never looked at.
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

/// Shared by the three collectives: the rebuilt value takes the old result's place and type.
template <typename Op> struct Packing {
  Op op;
  OpBuilder builder;
  dist::Mesh mesh;
  Views views;
  int64_t ranks;
  SubDims before, after;

  explicit Packing(Op op)
      : op(op), builder(op), mesh(dist::meshOf(op)),
        views(builder, op.getLoc(), nn::tensorType(op.getResult()).getElementType()),
        ranks(mesh.size(op.getAxis().str())), before(op.getBefore().getValue(), mesh),
        after(op.getAfter().getValue(), mesh) {}

  template <typename Raw> Value collective(Value blocks, ArrayRef<int64_t> shape) {
    return Raw::create(builder, op.getLoc(), views.type(shape), blocks, op.getAxisAttr(), op.getCauseAttr(),
                       op.getAvoidAttr());
  }
  void finish(Value value) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    // The encoding comes back with the last op.
    if (nn::shapeOf(value) == type.getShape())
      value.setType(type);
    else
      value = nn::ReshapeOp::create(builder, op.getLoc(), type, value);
    op.getResult().replaceAllUsesWith(value);
    op.erase();
  }
};

void pack(dist::AllGatherOp op) {
  Packing<dist::AllGatherOp> p(op);
  int64_t position = p.before.position(op.getFromDim(), op.getFromSub());
  Value blocks = p.collective<dist::RawAllGatherOp>(op.getOperand(), withRanks(p.ranks, nn::shapeOf(op.getOperand())));
  blocks = p.views.reshape(blocks, withRanks(p.ranks, p.before.sizes));
  Value merged = p.views.mergeIn(blocks, position, p.after.sizes[position]);
  p.finish(p.views.reshape(merged, nn::shapeOf(op.getResult())));
}

void pack(dist::ReduceScatterOp op) {
  Packing<dist::ReduceScatterOp> p(op);
  int64_t position = p.after.position(op.getToDim(), op.getToSub());
  Value box = p.views.reshape(op.getOperand(), p.before.sizes);
  Value blocks = p.views.splitOff(box, position, p.ranks, p.after.sizes[position]);
  blocks = p.views.reshape(blocks, withRanks(p.ranks, nn::shapeOf(op.getResult())));
  p.finish(p.collective<dist::RawReduceScatterOp>(blocks, nn::shapeOf(op.getResult())));
}

void pack(dist::AllToAllOp op) {
  Packing<dist::AllToAllOp> p(op);
  int64_t from = p.before.position(op.getFromDim(), op.getFromSub()),
          to = p.after.position(op.getToDim(), op.getToSub());
  Value box = p.views.reshape(op.getOperand(), p.before.sizes);
  Value blocks = p.views.splitOff(box, to, p.ranks, p.after.sizes[to]);
  blocks = p.collective<dist::RawAllToAllOp>(blocks, nn::shapeOf(blocks));
  Value merged = p.views.mergeIn(blocks, from, p.after.sizes[from]);
  p.finish(p.views.reshape(merged, nn::shapeOf(op.getResult())));
}

/// The steps of a reshard split their sub-dims alike on both sides.
LogicalResult checkSubDims(Operation *op, dist::ShardingAttr before, dist::ShardingAttr after) {
  const dist::Sharding &from = before.getValue(), &to = after.getValue();
  for (auto [a, b] : llvm::zip_equal(from.dims, to.dims))
    if (!llvm::equal(a, b, [](const dist::SubDim &x, const dist::SubDim &y) { return x.size == y.size; }))
      return userError(op, ErrorKind::Internal) << "the sub-dims of " << dist::toString(from) << " and "
                                                << dist::toString(to) << " differ; split both alike";
  return success();
}

struct PackCollectivesPass : impl::PackCollectivesBase<PackCollectivesPass> {
  void runOnOperation() override {
    SmallVector<Operation *> collectives;
    getOperation().walk([&](Operation *op) {
      if (isa<dist::AllGatherOp, dist::ReduceScatterOp, dist::AllToAllOp>(op))
        collectives.push_back(op);
    });
    for (Operation *op : collectives) {
      LogicalResult packed =
          TypeSwitch<Operation *, LogicalResult>(op).Case<dist::AllGatherOp, dist::ReduceScatterOp, dist::AllToAllOp>(
              [](auto op) {
                if (failed(checkSubDims(op, op.getBefore(), op.getAfter())))
                  return failure();
                pack(op);
                return success();
              });
      if (failed(packed))
        return signalPassFailure();
    }
  }
};
} // namespace
} // namespace hpc
