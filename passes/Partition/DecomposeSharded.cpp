// Pass hpc-decompose-sharded: a composite that reduces over a cut factor becomes its definition, whose reductions the
// partitioner knows. The shardings of the new ops follow from the operands alone, so a definition may hold composites
// again (attention holds a softmax).
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "passes/Partition/Passes.h"
#include "passes/Partition/SharedSums.h"

namespace hpc {
#define GEN_PASS_DEF_DECOMPOSESHARDED
#include "passes/Partition/Passes.h.inc"

using namespace dist;

static bool cutsInternally(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled || !isa<CompositeOpInterface>(op))
    return false;
  std::optional<FactorShardings> factors = factorsOf(op);
  if (!factors)
    return false;
  ShardingRule rule = ruled.getShardingRule();
  return llvm::any_of(llvm::zip(rule.factors, *factors),
                      [](auto pair) { return std::get<0>(pair).isInternal && isCut(std::get<1>(pair)); });
}

static Value reshardTo(OpBuilder &builder, Location loc, Value value, const Sharding &wanted) {
  if (shardingOf(value) == wanted)
    return value;
  return ReshardOp::create(builder, loc, withSharding(nn::tensorType(value), wanted), value, StringAttr(),
                           StringAttr());
}

static void setResultShardings(Operation *op, const OpSharding &sharding, const Mesh &mesh) {
  for (OpResult result : op->getResults())
    result.setType(withSharding(nn::tensorType(result), sharding.result(result.getResultNumber(), mesh)));
}

/// Shardings of an op that the definition just made.
static void inferShardings(Operation *op, const CutOrigins &origins, const Mesh &mesh) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled) {
    for (Value result : op->getResults())
      result.setType(withSharding(nn::tensorType(result), replicated(nn::shapeOf(result).vec())));
    return;
  }
  SmallVector<Sharding> operands;
  for (Value operand : op->getOperands())
    operands.push_back(shardingOf(operand));
  OpSharding sharding = inferFromOperands(ruled.getShardingRule(), operands, mesh);
  setResultShardings(op, sharding, mesh);
  setFactors(op, sharding.factors);
  setOrigins(op, origins);
}

/// Replaces `op` and appends composites among the new ops to `pending`.
static void decompose(Operation *op, SmallVectorImpl<Operation *> &pending, const Mesh &mesh) {
  OpBuilder builder(op);
  OpSharding sharding{cast<ShardingRuleOpInterface>(op).getShardingRule(), *factorsOf(op), {}, -1};
  for (OpOperand &operand : op->getOpOperands())
    operand.set(reshardTo(builder, op->getLoc(), operand.get(), sharding.operand(operand.getOperandNumber(), mesh)));

  Operation *before = op->getPrevNode();
  SmallVector<Value> values = cast<CompositeOpInterface>(op).decompose(builder);
  Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
  for (Operation *made = first; made != op; made = made->getNextNode()) {
    inferShardings(made, originsOf(op), mesh);
    if (cutsInternally(made))
      pending.push_back(made);
  }
  for (auto [result, value] : llvm::zip(op->getResults(), values)) {
    Value whole = reshardTo(builder, op->getLoc(), value, shardingOf(result));
    if (std::optional<int64_t> id = valueIdsOf(op).made; id && whole.getDefiningOp())
      setValueIds(whole.getDefiningOp(), whole.getDefiningOp<ReshardOp>() ? ValueIds{{}, id} : ValueIds{id, {}});
    result.replaceAllUsesWith(whole);
  }
  op->erase();
}

namespace {
struct DecomposeSharded : impl::DecomposeShardedBase<DecomposeSharded> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    Mesh mesh = meshOf(function);
    SmallVector<Operation *> pending;
    for (Operation &op : function.front())
      if (cutsInternally(&op))
        pending.push_back(&op);
    if (pending.empty())
      return;
    while (!pending.empty())
      decompose(pending.pop_back_val(), pending, mesh);
    shareSums(function);
  }
};
} // namespace
} // namespace hpc
