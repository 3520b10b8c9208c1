// Every step changes exactly one thing: an axis appears or disappears at the sub-dim that the step names, or is no longer summed over. So the shardings
// without what the step changes must be equal in normal form; anything else (another axis, another dim, twice) differs.
#include "passes/Partition/CollectiveCheck.h"

#include "compiler/Dialect/Dist/FactorShardings.h"

namespace hpc {

using namespace dist;

bool isCollective(Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective && collective.getStep();
}

/// Removes `axis` from the sub-dim, where it must be innermost; otherwise returns false.
static bool removeAxis(Sharding &sharding, int64_t dim, int64_t sub, StringRef axis) {
  if (dim < 0 || dim >= int64_t(sharding.dims.size()) || sub < 0 || sub >= int64_t(sharding.dims[dim].size()))
    return false;
  std::vector<std::string> &axes = sharding.dims[dim][sub].axes;
  if (axes.empty() || axes.back() != axis)
    return false;
  axes.pop_back();
  return true;
}

/// Axes trade places: sizes stay, and so do the axes that are not named.
static std::string checkPermute(ReshardStep step) {
  for (Sharding *sharding : {&step.before, &step.after})
    for (DimSharding &dim : sharding->dims)
      for (SubDim &sub : dim)
        sub.axes.erase(std::remove_if(sub.axes.begin(), sub.axes.end(),
                                      [&](const std::string &axis) { return llvm::is_contained(step.axes, axis); }),
                       sub.axes.end());
  return step.before == step.after ? "" : "changes more than the places of its axes";
}

std::string checkCollective(Operation *op, const Mesh &mesh) {
  auto collective = cast<CollectiveOpInterface>(op);
  const ReshardStep step = *collective.getStep();
  const bool isOverTime = step.kind == ReshardStep::Accumulate, isLocal = step.kind == ReshardStep::Slice;
  for (const std::string &axis : step.axes)
    if (mesh.index(axis) < 0 || // a micro-batch may slice its rows from a value that all ranks hold
        (mesh.hasRole(axis, AxisRole::Time) != isOverTime && !isLocal))
      return "works over '" + axis + "', along which " +
             (isOverTime ? "ranks differ, not micro-batches" : "data cannot move");

  auto areEqual = [&](const Sharding &a, const Sharding &b) { return normalize(a, mesh) == normalize(b, mesh); };
  std::optional<ReduceKind> reduction = collective.getReduction();
  if (reduction && *reduction != ReduceKind::Sum)
    return areEqual(step.before, step.after) ? "" : "only a sum over ranks changes a sharding";
  if (step.kind == ReshardStep::Permute)
    return checkPermute(step);
  Sharding before = step.before, after = step.after;
  if (reduction) {
    if (AxisNames whole = without(step.axes, before.partial); !whole.empty())
      return "sums over '" + whole[0] + "', but the operand is not partial over it: " + toString(before);
    before.partial = without(before.partial, step.axes);
  }
  const bool changesWhatItNames = (step.fromDim < 0 || removeAxis(before, step.fromDim, step.fromSub, step.axes[0])) &&
                                  (step.toDim < 0 || removeAxis(after, step.toDim, step.toSub, step.axes[0]));
  return changesWhatItNames && areEqual(before, after)
             ? ""
             : "does not lead from " + toString(step.before) + " to " + toString(step.after);
}

} // namespace hpc
