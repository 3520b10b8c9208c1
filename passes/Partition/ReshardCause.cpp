// Causes are found by walking back from the value to the op that made it partial or cut, where propagation noted which
// seed brought the axis.
#include "passes/Partition/ReshardCause.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Location.h"

namespace hpc {

using namespace dist;

std::string describeOp(Operation *op) {
  std::string node = nodeName(op->getLoc());
  return op->getName().getStringRef().str() + (node.empty() ? "" : " (" + node + ")");
}

static std::string originOf(Operation *op, const std::string &axis) {
  auto origins = op ? op->getAttrOfType<DictionaryAttr>(originAttrName) : DictionaryAttr();
  auto text = origins ? origins.getAs<StringAttr>(axis) : StringAttr();
  return text ? text.str() : std::string();
}

/// The op that reduces over `axis`: a partial sum may have come through linear ops since.
static Operation *findReduction(Value value, const std::string &axis) {
  Operation *op = value.getDefiningOp();
  while (op) {
    auto partial = llvm::find_if(op->getOperands(),
                                 [&](Value operand) { return llvm::is_contained(shardingOf(operand).partial, axis); });
    if (partial == op->getOperands().end())
      break;
    op = (*partial).getDefiningOp();
  }
  return op;
}

static std::string byOrigin(const std::string &origin) { return origin.empty() ? "" : " by " + origin; }
static std::string avoidOrigin(const std::string &origin, const std::string &otherwise) {
  return origin.empty() ? otherwise : "do without " + origin;
}

ReshardCause causeOf(Value value, Operation *user, const Sharding &from, const Sharding &to) {
  std::string needs = user ? describeOp(user) : "the return";
  if (AxisNames axes = without(from.partial, to.partial); !axes.empty()) {
    Operation *op = findReduction(value, axes[0]);
    std::string origin = originOf(op, axes[0]);
    return {(op ? describeOp(op) : "a value") + " sums over a dim cut over " + axes[0] + byOrigin(origin) + "; " +
                needs + " needs the complete sum",
            avoidOrigin(origin, "leave the summed dim uncut")};
  }
  for (unsigned dim = 0; dim < from.dims.size(); ++dim)
    if (isCut(from.dims[dim]) && from.dims[dim] != to.dims[dim]) {
      std::string axis = axesOf(from.dims[dim])[0];
      for (const std::string &other : axesOf(from.dims[dim]))
        if (!llvm::is_contained(axesOf(to.dims[dim]), other))
          axis = other;
      std::string origin = originOf(value.getDefiningOp(), axis);
      return {"dim " + std::to_string(dim) + " is cut " + toString(from.dims[dim]) + byOrigin(origin) + "; " + needs +
                  " needs it " + (isCut(to.dims[dim]) ? toString(to.dims[dim]) : "whole"),
              avoidOrigin(origin, "cut it as " + needs + " needs it")};
    }
  return {needs + " needs " + toString(to), ""};
}

ReshardCause causeOfReduction(Operation *op, const AxisNames &axes) {
  std::string origin = originOf(op, axes[0]);
  return {describeOp(op) + " reduces over a dim cut over " + axes[0] + byOrigin(origin),
          avoidOrigin(origin, "leave the reduced dim uncut")};
}

} // namespace hpc
