// The meaning of the collectives, fill_tail and offset on all coordinates at once.
// A rank reads only members of its group along the op's own axes: data that a wrong axis cannot reach stays NaN, and
// shows.
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/Interpreter/Boxes.h"
#include "compiler/Interpreter/Evaluators.h"

namespace hpc::interpreter {

using dist::Mesh;
using dist::Sharding;
using Boxes = std::vector<std::shared_ptr<Tensor>>;

/// Combines whole boxes in coordinate order; a group computes once.
static Boxes allReduce(const std::vector<std::string> &axes, ReduceKind kind,
                       const LocalTensors &operand, const Mesh &mesh) {
  Boxes results(operand.size());
  MeshGroups groups(mesh, axes);
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
    ArrayRef<int64_t> group = groups.of(c);
    if (group.front() != c) {
      results[c] = results[group.front()];
      continue;
    }
    auto result = std::make_shared<Tensor>(*operand[c]);
    for (int64_t member : llvm::drop_begin(group)) {
      for (size_t i = 0; i < result->floats.size(); ++i)
        result->floats[i] = combine(kind, result->floats[i], operand[member]->floats[i]);
      for (size_t i = 0; i < result->ints.size(); ++i)
        result->ints[i] = combine(kind, result->ints[i], operand[member]->ints[i], result->dtype);
    }
    results[c] = result;
  }
  return results;
}

/// Every element of the result comes from the members of the group along `axes` that hold it: from any of them, or
/// added up.
static Boxes exchange(Operation *op, const LocalTensors &operand, const Mesh &mesh, const Sharding &before,
                      const Sharding &after, ArrayRef<std::string> axes, bool isSum = false) {
  Boxes results;
  MeshGroups groups(mesh, axes);
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
    auto result = std::make_shared<Tensor>(emptyLike(op->getResult(0)));
    Tensor &target = *result;
    if (!isSum)
      for (int64_t i = 0; i < target.size(); ++i)
        setMissing(target, i);
    for (int64_t member : groups.of(c)) {
      const Tensor &source = *operand[member];
      SmallVector<Positions> dims = sharedPositions(before, mesh.coordinate(member), after, mesh.coordinate(c), mesh);
      forEachPosition(dims, stridesOf(source.shape), stridesOf(target.shape), [&](int64_t from, int64_t to) {
        if (source.isFloat())
          target.floats[to] = isSum ? target.floats[to] + source.floats[from] : source.floats[from];
        else if (isSum)
          target.ints[to] = combine(ReduceKind::Sum, target.ints[to], source.ints[from], target.dtype);
        else
          target.ints[to] = source.ints[from];
      });
    }
    results.push_back(result);
  }
  return results;
}

static Boxes fillTail(dist::FillTailOp op, const LocalTensors &operand, const Mesh &mesh) {
  Boxes results;
  auto real = dyn_cast<FloatAttr>(op.getValue());
  auto whole = dyn_cast<IntegerAttr>(op.getValue());
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
    auto result = std::make_shared<Tensor>(*operand[c]);
    fillPadding(*result, dist::shardingOf(op.getOperand()), mesh, mesh.coordinate(c), op.getDims(),
                real ? real.getValueAsDouble() : 0,
                !whole                                          ? 0
                : whole.getType().isUnsignedInteger() || whole.getType().isInteger(1)
                    ? int64_t(whole.getValue().getZExtValue())
                    : whole.getValue().getSExtValue());
    results.push_back(result);
  }
  return results;
}

/// The index whose digits are the starts of the rank's blocks, each clamped to its sub-dim.
static Boxes offset(dist::OffsetOp op, const Mesh &mesh) {
  Boxes results;
  const Sharding sharding = op.getDim().getValue();
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
    int64_t first = 0;
    for (const dist::SubDim &sub : sharding.dims.front())
      first = first * sub.size + std::min(dist::heldDigits(sub, mesh, op.placeOf(mesh, mesh.coordinate(c))).start, sub.size);
    auto result = std::make_shared<Tensor>(emptyLike(op.getResult()));
    result->ints.front() = first;
    results.push_back(result);
  }
  return results;
}

/// Which block of a member's operand is added to which block of the result, in the plan's collectives on contiguous
/// blocks.
struct BlockMove {
  int64_t fromBlock, toBlock;
};
/// `move(member, own)` says so, for positions in the group along `axis`.
template <typename Move>
static Boxes moveBlocks(Operation *op, StringRef axis, const LocalTensors &operand, const Mesh &mesh, int64_t blocksIn,
                        int64_t blocksOut, Move move) {
  Boxes results;
  MeshGroups groups(mesh, {axis.str()});
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
    ArrayRef<int64_t> group = groups.of(c);
    int64_t own = std::distance(group.begin(), llvm::find(group, c));
    auto result = std::make_shared<Tensor>(emptyLike(op->getResult(0)));
    std::fill(result->floats.begin(), result->floats.end(), -0.0); // to which adding anything copies it
    for (auto [index, member] : llvm::enumerate(group)) {
      const Tensor &source = *operand[member];
      int64_t size = blocksIn ? source.size() / blocksIn : 0;
      BlockMove blocks = move(int64_t(index), own);
      assert(blocksOut * size == result->size() && "verified");
      for (int64_t i = 0; i < size; ++i) {
        int64_t from = blocks.fromBlock * size + i, to = blocks.toBlock * size + i;
        if (source.isFloat())
          result->floats[to] += source.floats[from];
        else
          result->ints[to] =
              combine(ReduceKind::Sum, result->ints[to], source.ints[from], result->dtype);
      }
    }
    results.push_back(result);
  }
  return results;
}

/// Whole operands change places along one axis.
static Boxes permute(dist::RawPermuteOp op, const LocalTensors &operand, const Mesh &mesh) {
  Boxes results;
  MeshGroups groups(mesh, {op.getAxis().str()});
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c)
    results.push_back(std::make_shared<Tensor>(*operand[groups.of(c)[op.sourceOf(mesh, mesh.coordinate(c))]]));
  return results;
}

/// The range of the dim, in a box whose other elements are zero.
static Boxes block(dist::RawBlockOp op, const LocalTensors &operand, const Mesh &mesh) {
  Boxes results;
  const size_t dim = size_t(op.getDim());
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
    auto result = std::make_shared<Tensor>(emptyLike(op.getResult()));
    const Tensor &source = *operand[size_t(c)];
    const dist::Range range = op.rangeAt(mesh, mesh.coordinate(c));
    const int64_t inner = elementCount(ArrayRef(source.shape).drop_front(dim + 1)),
                  outer = elementCount(ArrayRef(source.shape).take_front(dim));
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < range.extent * inner; ++i)
        result->setNumber(o * result->shape[dim] * inner + i, source.number((o * source.shape[dim] + range.start) * inner + i));
    results.push_back(result);
  }
  return results;
}

Expected<Boxes> runCollective(Operation *op, const LocalTensors &operand, const Mesh &mesh) {
  auto step = [&](auto step, ArrayRef<std::string> axes, bool isSum = false) {
    return exchange(step, operand, mesh, step.getBefore().getValue(), step.getAfter().getValue(), axes, isSum);
  };
  if (auto allReduceOp = dyn_cast<dist::AllReduceOp>(op))
    return allReduce(dist::axesOf(allReduceOp.getAxes()), allReduceOp.getKind(), operand, mesh);
  if (auto accumulate = dyn_cast<dist::AccumulateOp>(op)) // all micro-batches of the step run in lock step here
    return allReduce(dist::axesOf(accumulate.getAxes()), ReduceKind::Sum, operand, mesh);
  if (auto gather = dyn_cast<dist::AllGatherOp>(op))
    return step(gather, {gather.getAxis().str()});
  if (auto scatter = dyn_cast<dist::ReduceScatterOp>(op))
    return step(scatter, {scatter.getAxis().str()}, /*isSum=*/true);
  if (auto allToAll = dyn_cast<dist::AllToAllOp>(op))
    return step(allToAll, {allToAll.getAxis().str()});
  if (auto slice = dyn_cast<dist::SliceOp>(op))
    return step(slice, {});
  if (auto permute = dyn_cast<dist::PermuteOp>(op))
    return step(permute, dist::axesOf(permute.getAxes()));
  if (auto gather = dyn_cast<dist::RawAllGatherOp>(op))
    return moveBlocks(gather, gather.getAxis(), operand, mesh, 1, mesh.size(gather.getAxis().str()),
                      [](int64_t member, int64_t) { return BlockMove{0, member}; });
  if (auto scatter = dyn_cast<dist::RawReduceScatterOp>(op))
    return moveBlocks(scatter, scatter.getAxis(), operand, mesh, mesh.size(scatter.getAxis().str()), 1,
                      [](int64_t, int64_t own) { return BlockMove{own, 0}; });
  if (auto allToAll = dyn_cast<dist::RawAllToAllOp>(op))
    return moveBlocks(allToAll, allToAll.getAxis(), operand, mesh, mesh.size(allToAll.getAxis().str()),
                      mesh.size(allToAll.getAxis().str()),
                      [](int64_t member, int64_t own) { return BlockMove{own, member}; });
  if (auto permuteOp = dyn_cast<dist::RawPermuteOp>(op))
    return permute(permuteOp, operand, mesh);
  if (auto blockOp = dyn_cast<dist::RawBlockOp>(op))
    return block(blockOp, operand, mesh);
  if (auto fill = dyn_cast<dist::FillTailOp>(op))
    return fillTail(fill, operand, mesh);
  if (auto offsetOp = dyn_cast<dist::OffsetOp>(op))
    return offset(offsetOp, mesh);
  return Status::error(ErrorKind::Internal, describeOp(op) + " has no meaning in the interpreter");
}

} // namespace hpc::interpreter
