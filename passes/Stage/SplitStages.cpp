// Moves every op of @main into the pipe.stage that computes it. Trunk ops go to one stage; what they need of weights
// alone or inputs alone is cloned into each stage that uses it, so the activation that crosses a cut is all that is
// ever sent.
#include "passes/Stage/Blocks.h"
#include "passes/Stage/Passes.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Location.h"
#include "llvm/ADT/SetVector.h"

namespace hpc {

#define GEN_PASS_DEF_SPLITSTAGES
#include "passes/Stage/Passes.h.inc"

namespace {
/// Builds the stages of one function, first to last.
struct Splitter {
  func::FuncOp function;
  const Blocks &blocks;
  std::vector<size_t> stageOfTrunk;            ///< by position in blocks.trunk
  llvm::DenseMap<Operation *, size_t> stageOf; ///< trunk ops only
  llvm::DenseMap<Value, Value> arrived;        ///< trunk value -> what stands for it outside of the current stage
  llvm::DenseMap<Value, Value> returned;       ///< returned value -> stage result

  Splitter(func::FuncOp function, const Blocks &blocks, ArrayRef<size_t> blocksOfStage)
      : function(function), blocks(blocks) {
    size_t block = 0;
    for (auto [stage, count] : llvm::enumerate(blocksOfStage))
      for (size_t i = 0; i < count; ++i, ++block) {
        size_t end = block + 1 < blocks.size() ? blocks.firstOp[block + 1] : blocks.trunk.size();
        for (size_t op = blocks.firstOp[block]; op < end; ++op)
          stageOf[blocks.trunk[op]] = stage;
      }
  }

  size_t lastStageUsing(Value value) const {
    size_t last = 0;
    for (Operation *user : value.getUsers())
      if (auto found = stageOf.find(user); found != stageOf.end())
        last = std::max(last, found->second);
    return last;
  }

  /// Everything that `stage` computes, in program order, and the values that come from outside: function arguments and
  /// trunk values of earlier stages.
  void collect(size_t stage, llvm::SetVector<Operation *> &ops, llvm::SetVector<Value> &inputs,
               ArrayRef<Value> wanted) {
    SmallVector<Value> pending(wanted);
    llvm::DenseSet<Operation *> needed;
    for (Operation *op : blocks.trunk)
      if (stageOf[op] == stage && needed.insert(op).second)
        llvm::append_range(pending, op->getOperands());
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      Operation *producer = value.getDefiningOp();
      auto found = producer ? stageOf.find(producer) : stageOf.end();
      bool isElsewhere = found != stageOf.end() && found->second != stage;
      if (producer && !isElsewhere && needed.insert(producer).second)
        llvm::append_range(pending, producer->getOperands());
    }
    for (Operation &op : function.getBody().front())
      if (needed.contains(&op))
        ops.insert(&op);
    // Inputs in a fixed order: arguments first, then what arrives, in program order.
    auto uses = [&](Value value) {
      return llvm::is_contained(wanted, value) ||
             llvm::any_of(value.getUsers(), [&](Operation *user) { return needed.contains(user); });
    };
    for (Value argument : function.getArguments())
      if (uses(argument))
        inputs.insert(argument);
    for (Operation *op : blocks.trunk)
      for (Value result : op->getResults())
        if (stageOf[op] < stage && (uses(result) || lastStageUsing(result) > stage))
          if (lastStageUsing(result) >= stage)
            inputs.insert(result);
  }

  void build(OpBuilder &builder, size_t stages) {
    Operation *terminator = function.getBody().front().getTerminator();
    builder.setInsertionPoint(terminator);
    for (size_t stage = 0; stage < stages; ++stage)
      buildStage(builder, stage, stages, terminator);
    for (OpOperand &operand : terminator->getOpOperands())
      operand.set(returned[operand.get()]);
  }

  void buildStage(OpBuilder &builder, size_t stage, size_t stages, Operation *terminator) {
    // A returned value leaves from the stage that computes it; what no trunk computes, from the first.
    llvm::SetVector<Value> results;
    for (Value value : terminator->getOperands()) {
      auto found = value.getDefiningOp() ? stageOf.find(value.getDefiningOp()) : stageOf.end();
      if ((found == stageOf.end() ? 0 : found->second) == stage)
        results.insert(value);
    }
    size_t numReturned = results.size();
    llvm::SetVector<Value> crossing;
    for (Operation *op : blocks.trunk)
      for (Value result : op->getResults())
        if (stageOf[op] <= stage && lastStageUsing(result) > stage)
          crossing.insert(result);

    llvm::SetVector<Operation *> ops;
    llvm::SetVector<Value> inputs;
    collect(stage, ops, inputs, results.getArrayRef());
    results.insert(crossing.begin(), crossing.end());

    SmallVector<Value> operands;
    for (Value input : inputs)
      operands.push_back(isa<BlockArgument>(input) ? input : arrived.lookup(input));
    SmallVector<Location> places;
    for (Value result : results)
      places.push_back(result.getLoc());
    Location place = places.empty() ? function.getLoc() : places.front();
    auto types = llvm::map_to_vector(results, [](Value value) { return value.getType(); });
    auto stageOp = pipe::StageOp::create(builder, place, types, stage, "forward", operands);

    Block *body = new Block();
    stageOp.getBody().push_back(body);
    IRMapping mapping;
    for (Value input : inputs)
      mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
    OpBuilder inside = OpBuilder::atBlockEnd(body);
    for (Operation *op : ops)
      inside.clone(*op, mapping);
    pipe::YieldOp::create(inside, place,
                          llvm::map_to_vector(results, [&](Value value) { return mapping.lookup(value); }));

    for (auto [index, value] : llvm::enumerate(results)) {
      if (index < numReturned)
        returned[value] = stageOp.getResult(index);
      if (!crossing.contains(value))
        continue;
      std::string cause =
          "pipeline stage " + std::to_string(stage + 1) + " reads what stage " + std::to_string(stage) + " computes";
      auto transfer =
          pipe::TransferOp::create(builder, value.getLoc(), value.getType(), stageOp.getResult(index), stage, stage + 1,
                                   builder.getStringAttr(cause), builder.getStringAttr("fewer stages (--pp)"));
      if (auto id = value.getDefiningOp()->getAttr(valueIdAttrName))
        transfer->setAttr(movedIdAttrName, id); // what --verify should find on arrival
      arrived[value] = transfer;
    }
  }
};

struct SplitStages : impl::SplitStagesBase<SplitStages> {
  using SplitStagesBase::SplitStagesBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    // 1. Where the program may be cut, and which cuts to take.
    Blocks blocks = findBlocks(function);
    std::optional<std::vector<size_t>> counts = chooseSplit(function, blocks, stages, split);
    if (!counts)
      return signalPassFailure();
    // 2. Clone every op into its stage.
    SmallVector<Operation *> old;
    for (Operation &op : function.getBody().front().without_terminator())
      old.push_back(&op);
    OpBuilder builder(&getContext());
    Splitter(function, blocks, *counts).build(builder, counts->size());
    // 3. Drop what was there before.
    for (Operation *op : llvm::reverse(old))
      op->erase();
  }
};
} // namespace

} // namespace hpc
