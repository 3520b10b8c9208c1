// Every step changes exactly one thing: the axis that it names appears or disappears at the sub-dim that it names. So
// `before` with the change undone or done must equal `after` in normal form; anything else (another axis, another dim,
// twice) differs.
#include "passes/Partition/CollectiveCheck.h"

#include "compiler/Dialect/Dist/FactorShardings.h"

namespace hpc {

using namespace dist;

bool isCollective(Operation *op) {
  return isa<AllReduceOp, AccumulateOp, AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp, dist::SliceOp>(op);
}

/// Takes `axis` off the sub-dim that it cuts last; false when it does not.
static bool removeAxis(Sharding &sharding, int64_t dim, int64_t sub, StringRef axis) {
  if (dim < 0 || dim >= int64_t(sharding.dims.size()) || sub < 0 || sub >= int64_t(sharding.dims[dim].size()))
    return false;
  std::vector<std::string> &axes = sharding.dims[dim][sub].axes;
  if (axes.empty() || axes.back() != axis)
    return false;
  axes.pop_back();
  return true;
}

static bool equal(const Sharding &a, const Sharding &b, const Mesh &mesh) {
  return normalize(a, mesh) == normalize(b, mesh);
}

/// An all-reduce or an accumulation.
static std::string checkSum(const AxisNames &axes, const Sharding &before, const Sharding &after, const Mesh &mesh) {
  Sharding expected = before;
  expected.partial = without(before.partial, axes);
  if (!without(axes, before.partial).empty())
    return "sums over '" + without(axes, before.partial)[0] +
           "', but the operand is not partial over it: " + toString(before);
  return equal(expected, after, mesh) ? "" : "gives " + toString(expected) + ", not " + toString(after);
}

/// Axes trade places: sizes stay, and so do the axes that are not named.
static std::string checkPermute(PermuteOp op, Sharding before, Sharding after) {
  AxisNames axes = axesOf(op.getAxes());
  for (Sharding *sharding : {&before, &after})
    for (DimSharding &dim : sharding->dims)
      for (SubDim &sub : dim)
        sub.axes.erase(std::remove_if(sub.axes.begin(), sub.axes.end(),
                                      [&](const std::string &axis) { return llvm::is_contained(axes, axis); }),
                       sub.axes.end());
  return before == after ? "" : "changes more than the places of its axes";
}

std::string checkCollective(Operation *op, const Mesh &mesh) {
  Sharding before = op->getAttrOfType<ShardingAttr>("before").getValue(),
           after = op->getAttrOfType<ShardingAttr>("after").getValue();
  std::string differs = "does not lead from " + toString(before) + " to " + toString(after);
  auto single = op->getAttrOfType<StringAttr>("axis");
  AxisNames axes = single ? AxisNames{single.str()} : axesOf(op->getAttrOfType<ArrayAttr>("axes"));
  for (const std::string &axis : axes)
    if (mesh.index(axis) < 0 || // a micro-batch may take its rows of what all hold
        (mesh.hasRole(axis, AxisRole::Time) != isa<AccumulateOp>(op) && !isa<dist::SliceOp>(op)))
      return "works over '" + axis + "', along which " +
             (isa<AccumulateOp>(op) ? "ranks differ, not micro-batches" : "data cannot move");

  if (auto reduce = dyn_cast<AllReduceOp>(op); reduce && reduce.getKind() != ReduceKind::Sum)
    return equal(before, after, mesh) ? "" : "only a sum over ranks changes a sharding";
  if (isa<AllReduceOp, AccumulateOp>(op))
    return checkSum(axes, before, after, mesh);
  if (auto permute = dyn_cast<PermuteOp>(op))
    return checkPermute(permute, before, after);
  if (auto gather = dyn_cast<AllGatherOp>(op))
    return removeAxis(before, gather.getFromDim(), gather.getFromSub(), gather.getAxis()) && equal(before, after, mesh)
               ? ""
               : differs;
  if (auto slice = dyn_cast<dist::SliceOp>(op))
    return removeAxis(after, slice.getToDim(), slice.getToSub(), slice.getAxis()) && equal(before, after, mesh)
               ? ""
               : differs;
  if (auto toAll = dyn_cast<AllToAllOp>(op))
    return removeAxis(before, toAll.getFromDim(), toAll.getFromSub(), toAll.getAxis()) &&
                   removeAxis(after, toAll.getToDim(), toAll.getToSub(), toAll.getAxis()) && equal(before, after, mesh)
               ? ""
               : differs;
  auto scatter = cast<ReduceScatterOp>(op);
  if (!removeAxis(after, scatter.getToDim(), scatter.getToSub(), scatter.getAxis()))
    return differs;
  after.partial = unite(after.partial, {scatter.getAxis().str()});
  return equal(before, after, mesh) ? "" : differs;
}

} // namespace hpc
