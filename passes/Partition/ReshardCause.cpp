// Causes are found by walking back from the value to the op that made it partial or cut, where propagation noted which
// seed brought the axis.
#include "passes/Partition/ReshardCause.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/WholeOutput.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Location.h"

namespace hpc {

using namespace dist;

/// "matmul": short, since the line that prints it names node and module beside it.
static std::string shortName(Operation *op) { return op->getName().stripDialect().str(); }

static std::string originOf(Operation *op, const std::string &axis) {
  CutOrigins origins = originsOf(op);
  auto origin = origins.find(axis);
  return origin == origins.end() ? std::string() : origin->second;
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

static std::string giveUp(const std::string &origin, const std::string &otherwise) {
  return origin.empty() ? otherwise : "giving up " + origin;
}

ReshardCause causeOf(Value value, Operation *user, const Sharding &from, const Sharding &to) {
  std::string reader = user ? shortName(user) : "the caller";
  if (AxisNames axes = without(from.partial, to.partial); !axes.empty()) {
    Operation *op = findReduction(value, axes[0]);
    return {(op ? shortName(op) + " sums over " : "the value is a sum over ") + llvm::join(axes, ", ") + " and " +
                reader + " needs the whole sum",
            giveUp(originOf(op, axes[0]), "leaving the summed dim uncut")};
  }
  for (unsigned dim = 0; dim < from.dims.size(); ++dim)
    if (isCut(from.dims[dim]) && from.dims[dim] != to.dims[dim]) {
      std::string axis = axesOf(from.dims[dim])[0];
      for (const std::string &other : axesOf(from.dims[dim]))
        if (!llvm::is_contained(axesOf(to.dims[dim]), other))
          axis = other;
      if (llvm::is_contained(wholeOutputDims(value.getDefiningOp()), int64_t(dim)))
        return {"dim " + std::to_string(dim) + " is " + toString(from.dims[dim]) +
                    " and the sidecar wants the value whole",
                "giving up the sidecar's gather of " + wholeOutputSubject(value.getDefiningOp()).str()};
      return {reader + " needs dim " + std::to_string(dim) + " " +
                  (isCut(to.dims[dim]) ? "as " + toString(to.dims[dim]) : "whole") + " and gets it as " +
                  toString(from.dims[dim]),
              giveUp(originOf(value.getDefiningOp(), axis), "cutting it as " + reader + " needs it")};
    }
  return {reader + " needs " + toString(to), ""};
}

ReshardCause causeOfReduction(Operation *op, const AxisNames &axes) {
  return {shortName(op) + " reduces over a dim that is cut over " + llvm::join(axes, ", "),
          giveUp(originOf(op, axes[0]), "leaving the reduced dim uncut")};
}

} // namespace hpc
