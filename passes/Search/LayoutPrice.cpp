// Per value: the forms in which its readers take it, each made once. A reshard of propagation, before the return, is a reader.
#include "passes/Search/LayoutPrice.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"
#include "passes/Partition/Passes.h"

#include "mlir/Pass/PassManager.h"

namespace hpc::search {

using namespace dist;

static std::optional<OpSharding> opShardingOf(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  std::optional<FactorShardings> factors = ruled ? factorsOf(op) : std::nullopt;
  if (!factors)
    return std::nullopt;
  OpSharding sharding{ruled.getShardingRule(), *factors, {}, -1};
  sharding.setPassing(op);
  return sharding;
}

Expected<LayoutPrice> priceOf(ModuleOp module, LayoutCosts &costs) {
  // 1. What a plan has no collectives of its own for: composites are their definitions, terms of a sum share one.
  PassManager passes(module.getContext());
  passes.enableVerifier(false);
  passes.addPass(createDecomposeSharded());
  passes.addPass(createCollectPartials());
  if (failed(passes.run(module)))
    return Status::error(ErrorKind::Internal, "a propagated program cannot be priced");
  // 2. What each op wants.
  auto propagated = module.lookupSymbol<func::FuncOp>("main");
  LayoutPrice price;
  auto add = [&](const LayoutCosts::Move &move) {
    price.seconds += move.seconds;
    price.collectives.insert(price.collectives.end(), move.collectives.begin(), move.collectives.end());
  };
  SmallVector<Value> values(propagated.getArguments());
  llvm::DenseMap<Value, std::vector<LayoutCosts::Number>> wanted;
  auto want = [&](Value value, const Sharding &sharding) {
    std::vector<LayoutCosts::Number> &forms = wanted[value];
    if (LayoutCosts::Number number = costs.number(sharding); !llvm::is_contained(forms, number))
      forms.push_back(number);
  };
  for (Operation &op : propagated.front()) {
    llvm::append_range(values, op.getResults());
    if (auto reshard = dyn_cast<ReshardOp>(op))
      want(reshard.getOperand(), dist::shardingOf(reshard.getResult()));
    else if (std::optional<OpSharding> sharding = opShardingOf(&op)) {
      price.seconds += costs.compute(&op, *sharding);
      add(costs.atOnce(&op, *sharding));
      for (OpOperand &operand : op.getOpOperands())
        want(operand.get(), sharding->operand(operand.getOperandNumber(), costs.mesh()));
    } else if (isa<func::ReturnOp>(op)) {
      for (Value returned : op.getOperands()) {
        Sharding complete = dist::shardingOf(returned);
        complete.partial.clear();
        want(returned, complete);
      }
    }
  }
  // 3. Each form of a value is made once.
  for (Value value : values) {
    if (isa_and_present<ReshardOp>(value.getDefiningOp()))
      continue;
    LayoutCosts::Number has = costs.number(normalize(dist::shardingOf(value), costs.mesh()));
    for (const LayoutCosts::Move *move : costs.movesOf(has, wanted[value], elementBytes(nn::tensorType(value).getElementType())))
      add(*move);
  }
  return price;
}

} // namespace hpc::search
