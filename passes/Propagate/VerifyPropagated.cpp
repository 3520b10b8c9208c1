// Pass hpc-verify-propagated: checks the results of propagation. Every type is compared with the one that follows from
// the op's rule and factors. A failure is a defect of this program, except where a hand-written file is read.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/Dialect/NN/NN.h"
#include "passes/Propagate/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_VERIFYPROPAGATED
#include "passes/Propagate/Passes.h.inc"

using namespace dist;

namespace {
class Checker {
public:
  Checker(const Mesh &mesh) : mesh(mesh) {}

  LogicalResult check(Operation &op) {
    if (op.hasAttr(seedAttrName) || op.hasAttr(readSeedAttrName))
      return userError(&op, ErrorKind::Internal) << "a seed is left; hpc-propagate-shardings removes them";
    for (Value result : op.getResults())
      if (failed(checkValue(result)))
        return failure();
    if (std::optional<int64_t> id = valueIdsOf(&op).made; id && !ids.insert(*id).second)
      return userError(&op, ErrorKind::Internal) << valueIdAttrName << " " << *id << " is given twice";
    if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
      return checkOp(ruled);
    return success();
  }

  LogicalResult checkValue(Value value) {
    ShardingAttr attr = shardingAttrOf(value);
    if (!attr)
      return userError(value.getLoc(), ErrorKind::Internal)
             << "a value of type " << value.getType() << " has no sharding";
    if (Status legal = verify(attr.getValue(), nn::shapeOf(value).vec(), mesh); !legal.ok())
      return userError(value.getLoc(), legal.kind()) << legal.message();
    if (normalize(attr.getValue(), mesh) != attr.getValue())
      return userError(value.getLoc(), ErrorKind::Internal)
             << toString(attr.getValue()) << " is not in normal form: " << toString(normalize(attr.getValue(), mesh));
    return success();
  }

private:
  LogicalResult checkOp(ShardingRuleOpInterface op) {
    std::optional<FactorShardings> factors = factorsOf(op);
    if (!factors)
      return userError(op, ErrorKind::Internal) << "has no " << factorsAttrName;
    OpSharding sharding{op.getShardingRule(), *factors, {}, -1};
    if (sharding.factors.size() != sharding.rule.factors.size())
      return userError(op, ErrorKind::Internal) << factorsAttrName << " must have " << sharding.rule.factors.size()
                                                << " factors (" << sharding.rule.text << ")";
    AxisNames axes = axesOf(sharding.factors);
    for (auto [index, factor] : llvm::enumerate(sharding.rule.factors)) {
      const DimSharding &cut = sharding.factors[index];
      if (globalSize(cut) != factor.size || (isCut(cut) && !mayCut(factor, cut)))
        return userError(op, ErrorKind::Internal)
               << "factor " << index << " of size " << factor.size << " cannot be " << toString(cut);
      for (const std::string &axis : axesOf(cut))
        if (llvm::count(axes, axis) > 1)
          return userError(op, ErrorKind::Internal) << "axis '" << axis << "' cuts two factors";
    }
    SmallVector<AxisNames> partials;
    for (Value operand : op->getOperands())
      partials.push_back(shardingOf(operand).partial);
    sharding.setPassing(op);
    OpSharding largest = sharding;
    largest.choosePassing(partials);
    if (!without(sharding.passing, largest.passing).empty())
      return userError(op, ErrorKind::Internal)
             << "the result is partial over '" << without(sharding.passing, largest.passing)[0]
             << "', which neither a cut sum nor the operands give";
    for (OpResult result : op->getResults())
      if (shardingOf(result) != sharding.result(result.getResultNumber(), mesh))
        return userError(op, ErrorKind::Internal)
               << "result " << result.getResultNumber() << " is " << toString(shardingOf(result))
               << ", its factors give " << toString(sharding.result(result.getResultNumber(), mesh));
    return success();
  }

  const Mesh &mesh;
  DenseSet<int64_t> ids;
};

struct VerifyPropagated : impl::VerifyPropagatedBase<VerifyPropagated> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    Mesh mesh = meshOf(function);
    Checker checker(mesh);
    for (BlockArgument argument : function.getArguments())
      if (failed(checker.checkValue(argument)))
        return signalPassFailure();
    for (Operation &op : function.front())
      if (failed(checker.check(op)))
        return signalPassFailure();
    for (Value value : function.front().getTerminator()->getOperands())
      if (!shardingOf(value).partial.empty()) {
        userError(value.getLoc(), ErrorKind::Internal)
            << "a returned value is a partial sum: " << toString(shardingOf(value));
        return signalPassFailure();
      }
  }
};
} // namespace
} // namespace hpc
