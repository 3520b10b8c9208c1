// Pass hpc-localize: makes the program of one rank, on local boxes. The global program is kept beside it until the end,
// since the rules by which ops become local refer to global shapes.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/Location.h"
#include "passes/Partition/LowerReshard.h"
#include "passes/Partition/Passes.h"
#include "passes/Partition/ReshardCause.h"

namespace hpc {
#define GEN_PASS_DEF_LOCALIZE
#include "passes/Partition/Passes.h.inc"

using namespace dist;

namespace {
class Localizer {
public:
  Localizer(func::FuncOp function) : function(function), mesh(meshOf(function)), builder(function.getContext()) {}

  LogicalResult run() {
    Block &block = function.front();
    SmallVector<Operation *> old;
    for (Operation &op : block)
      old.push_back(&op);
    unsigned numArguments = block.getNumArguments();
    for (unsigned i = 0; i < numArguments; ++i) {
      BlockArgument argument = block.getArgument(i);
      locals.map(argument, block.addArgument(localType(nn::tensorType(argument), mesh), argument.getLoc()));
    }
    for (Operation *op : old) {
      builder.setInsertionPoint(op);
      if (failed(localize(op)))
        return failure();
    }
    for (Operation *op : llvm::reverse(old))
      op->erase();
    block.eraseArguments(0, numArguments);
    function.setFunctionType(
        FunctionType::get(function.getContext(), block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
    return success();
  }

private:
  LogicalResult localize(Operation *op) {
    if (auto reshard = dyn_cast<ReshardOp>(op)) {
      CollectiveNote note{reshard.getCauseAttr(), reshard.getAvoidAttr(), valueIdsOf(op).moved};
      FailureOr<Value> local =
          lowerReshard(builder, op->getLoc(), locals.lookup(reshard.getOperand()), shardingOf(reshard.getOperand()),
                       shardingOf(reshard.getResult()), mesh, note);
      if (failed(local))
        return failure();
      locals.map(reshard.getResult(), *local);
      return success();
    }
    if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
      return localizeComputation(ruled);
    // Parameters, constants, fill_tail, return: the same op on local types.
    OperationState state(op->getLoc(), op->getName(), localOperands(op), localTypes(op), op->getAttrs());
    locals.map(op->getResults(), builder.create(state)->getResults());
    return success();
  }

  LogicalResult localizeComputation(ShardingRuleOpInterface op) {
    std::string why;
    std::optional<OpSharding> sharding = readOpSharding(op, mesh, why);
    if (!sharding)
      return userError(op, ErrorKind::Internal)
             << describeOp(op) << ": " << why << "; hpc-insert-reshards makes operands fit";
    SmallVector<Value> offsets;
    for (auto [factor, cut] : llvm::zip(sharding->rule.factors, sharding->factors))
      if (factor.isIndex && isCut(cut))
        offsets.push_back(OffsetOp::create(builder, op.getLoc(), RankedTensorType::get({}, builder.getI64Type()),
                                           ShardingAttr::get(builder.getContext(), Sharding{{cut}, {}})));
    for (Value offset : offsets)
      offset.setType(withSharding(nn::tensorType(offset), Sharding()));
    Operation *local = op.localize(builder, localOperands(op), localTypes(op), offsets);
    noteGlobalAttributes(op, local);
    setOrigins(local, {});
    locals.map(op->getResults(), local->getResults());
    for (ReduceKind kind : allReduceKinds)
      if (kind != ReduceKind::Sum)
        combine(op, local, *sharding, kind);
    return success();
  }

  /// Only sums stay open: any other all-reduce follows at once and holds the op's value.
  void combine(Operation *op, Operation *local, const OpSharding &sharding, ReduceKind kind) {
    bool isAny = false;
    for (OpResult result : op->getResults()) {
      AxisNames axes = reducedAxes(sharding.rule, sharding.factors, kind, result.getResultNumber());
      if (axes.empty())
        continue;
      isAny = true;
      ReshardCause why = causeOfReduction(op, axes);
      SmallVector<StringRef> names(axes.begin(), axes.end());
      Value value = local->getResult(result.getResultNumber());
      auto same = ShardingAttr::get(builder.getContext(), shardingOf(result));
      auto combined =
          AllReduceOp::create(builder, op->getLoc(), value.getType(), value, same, same,
                              builder.getStringAttr(why.cause), builder.getStringAttr(why.avoid),
                              builder.getStrArrayAttr(names), ReduceKindAttr::get(builder.getContext(), kind));
      setValueIds(combined, valueIdsOf(local));
      locals.map(result, combined.getResult());
    }
    if (isAny)
      setValueIds(local, {});
  }

  SmallVector<Value> localOperands(Operation *op) {
    return llvm::map_to_vector(op->getOperands(), [&](Value operand) { return locals.lookup(operand); });
  }
  SmallVector<Type> localTypes(Operation *op) {
    return llvm::map_to_vector(op->getResultTypes(),
                               [&](Type type) -> Type { return localType(cast<RankedTensorType>(type), mesh); });
  }

  func::FuncOp function;
  Mesh mesh;
  OpBuilder builder;
  IRMapping locals;
};

struct Localize : impl::LocalizeBase<Localize> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (function && failed(Localizer(function).run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace hpc
