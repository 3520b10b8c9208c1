// Seeds: the shardings that a sidecar or a layout gives to a few values before anything flows.
// What a seed cuts stays cut; what it leaves uncut may be cut by others, unless it is the user's or cuts nothing at
// all.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Location.h"
#include "passes/Propagate/Propagation.h"

namespace hpc {

using namespace dist;

/// "wte.weight", "input ids", or the ONNX node.
static std::string subjectOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    std::string name = nodeName(argument.getLoc());
    return "input " + (name.empty() ? std::to_string(argument.getArgNumber()) : name);
  }
  Operation *op = value.getDefiningOp();
  if (auto parameter = dyn_cast<nn::ParameterOp>(op))
    return parameter.getName().str();
  std::string node = nodeName(op->getLoc());
  return node.empty() ? op->getName().getStringRef().str() : node;
}

/// Axes of size 1 and cuts of a single element say nothing.
static Sharding withoutEmptyCuts(Sharding sharding, const Mesh &mesh) {
  for (DimSharding &dim : sharding.dims)
    for (SubDim &sub : dim)
      if (sub.size == 1)
        sub.axes.clear();
  return normalize(sharding, mesh);
}

void Propagation::seedResult(OpState &state, unsigned result, const Sharding &seed, const Origins &origins,
                             bool closed) {
  const ShardingRule &rule = state.sharding.rule;
  for (auto [d, dim] : llvm::enumerate(rule.results[result])) {
    SmallVector<DimSharding> groups;
    bool nests = splitByFactors(rule, dim, seed.dims[d], mesh, groups);
    for (unsigned i = 0; nests && i < dim.size(); ++i)
      nests =
          !isCut(groups[i]) || groups[i] == state.sharding.factors[dim[i]] ||
          (!isCut(state.sharding.factors[dim[i]]) && !state.closed[dim[i]] && mayCut(rule.factors[dim[i]], groups[i]) &&
           !intersects(axesOf(groups[i]), axesOf(state.sharding.factors)));
    if (!nests) {
      state.op->emitRemark() << "[hpc-propagate-shardings] the op cannot compute dim " << d << " cut "
                             << toString(seed.dims[d]) << " as the seed asks (" << rule.text
                             << "); it stays as its operands have it";
      continue;
    }
    for (auto [factor, group] : llvm::zip(dim, groups)) {
      if (isCut(group)) {
        state.sharding.factors[factor] = group;
        state.anchored.set(factor);
      }
      if (closed)
        state.closed.set(factor);
    }
  }
  state.origins.insert(origins.begin(), origins.end());
  touch(state);
}

LogicalResult Propagation::seedValue(Value value, ShardingAttr attr, int priority, const std::string &subject) {
  Status legal = verify(attr.getValue(), nn::shapeOf(value).vec(), mesh);
  if (legal.ok() && !attr.getValue().partial.empty())
    legal = Status::error(ErrorKind::Sidecar, "sharding '" + toString(attr.getValue()) + "': a seed cannot be partial");
  if (!legal.ok())
    return userError(value.getLoc(), legal.kind()) << subject << ": " << legal.message();
  Sharding seed = withoutEmptyCuts(attr.getValue(), mesh);
  bool closed = priority == 0 || !llvm::any_of(attr.getValue().dims, isCut);
  Origins origins;
  for (const std::string &axis : cutAxes(seed))
    origins[axis] = {priority, subject};
  if (OpState *producer = producerOf(value)) {
    seedResult(*producer, cast<OpResult>(value).getResultNumber(), seed, origins, closed);
    return success();
  }
  SourceState &source = sources[sourceIndex[value]];
  if (source.seeded || source.closed)
    return success();
  source.sharding = seed;
  source.origins = origins;
  source.seeded = true;
  source.closed = closed;
  touchUsers(value);
  return success();
}

LogicalResult Propagation::seed(int priority) {
  auto priorityOf = [](Attribute attr) { return attr ? int(cast<IntegerAttr>(attr).getInt()) : 1; };
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto attr = function.getArgAttrOfType<ShardingAttr>(index, seedAttrName);
    if (attr && priorityOf(function.getArgAttr(index, priorityAttrName)) == priority &&
        failed(seedValue(argument, attr, priority, subjectOf(argument))))
      return failure();
  }
  for (Operation &op : function.front()) {
    Attribute attr = op.getAttr(seedAttrName);
    if (!attr || priorityOf(op.getAttr(priorityAttrName)) != priority)
      continue;
    for (auto [index, result] : llvm::enumerate(op.getResults())) {
      auto list = dyn_cast<ArrayAttr>(attr);
      Attribute one = list ? (index < list.size() ? list[index] : Attribute()) : attr;
      auto sharding = dyn_cast_if_present<ShardingAttr>(one);
      if (sharding && failed(seedValue(result, sharding, priority, subjectOf(result))))
        return failure();
    }
  }
  return success();
}

} // namespace hpc
