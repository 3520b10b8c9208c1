// Moves every op of @main into the pipe.stage that computes it. Trunk ops go to one part of the pipeline, what is cheap
// to repeat is cloned into each part that reads it. A trunk value that is read further on goes through every part
// between, so that messages are those of neighbours.
#include "passes/Stage/Blocks.h"
#include "passes/Stage/Passes.h"
#include "passes/Stage/StageRules.h"

#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Location.h"
#include "compiler/Sidecar/ModuleSidecar.h"
#include "llvm/ADT/SetVector.h"

namespace hpc {

#define GEN_PASS_DEF_SPLITSTAGES
#include "passes/Stage/Passes.h.inc"

namespace {
/// Builds the parts of one function, first to last. Part k is chunk k / stages of stage k % stages.
struct Splitter {
  func::FuncOp function;
  const std::vector<Operation *> &trunk;
  size_t stages, parts;
  llvm::DenseMap<Operation *, size_t> partOf; ///< trunk ops only
  llvm::DenseMap<Value, size_t> lastReader;   ///< trunk values: the last part that reads them; else absent
  llvm::DenseMap<Value, Value> arrived;       ///< trunk value -> what stands for it where the next part can read it
  llvm::DenseMap<Value, Value> returned;      ///< returned value -> result of its part

  Splitter(func::FuncOp function, const Blocks &blocks, ArrayRef<size_t> blocksOfPart, size_t stages)
      : function(function), trunk(blocks.trunk.ops), stages(stages), parts(blocksOfPart.size()) {
    size_t block = 0;
    for (auto [part, count] : llvm::enumerate(blocksOfPart))
      for (size_t i = 0; i < count; ++i, ++block)
        for (size_t op = blocks.firstOp[block]; op < blocks.endOp(block); ++op)
          partOf[trunk[op]] = part;
    for (Operation *op : trunk)
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp(); producer && partOf.count(producer))
          lastReader[operand] = std::max(lastReader.lookup(operand), partOf[op]);
  }

  /// Whether a trunk value is made in `part` or before and read behind it.
  bool leaves(Operation *op, Value result, size_t part) const {
    return partOf.lookup(op) <= part && lastReader.lookup(result) > part;
  }

  /// Everything that `part` computes, in program order, and the values that come from outside: function arguments,
  /// and trunk values that are read here or go on.
  void collect(size_t part, ArrayRef<Value> wanted, SmallVectorImpl<Operation *> &ops, SmallVectorImpl<Value> &inputs) {
    SmallVector<Value> pending(wanted);
    llvm::DenseSet<Operation *> needed;
    llvm::DenseSet<Value> read;
    for (Operation *op : trunk)
      if (partOf[op] == part && needed.insert(op).second)
        llvm::append_range(pending, op->getOperands());
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      read.insert(value);
      Operation *producer = value.getDefiningOp();
      auto found = producer ? partOf.find(producer) : partOf.end();
      bool isElsewhere = found != partOf.end() && found->second != part;
      if (producer && !isElsewhere && needed.insert(producer).second)
        llvm::append_range(pending, producer->getOperands());
    }
    for (Operation &op : function.getBody().front())
      if (needed.contains(&op))
        ops.push_back(&op);
    for (Value argument : function.getArguments())
      if (read.contains(argument))
        inputs.push_back(argument);
    for (Operation *op : trunk)
      for (Value result : op->getResults())
        if (partOf[op] < part && lastReader.lookup(result) >= part)
          inputs.push_back(result);
  }

  void build(OpBuilder &builder) {
    Operation *terminator = function.getBody().front().getTerminator();
    builder.setInsertionPoint(terminator);
    for (size_t part = 0; part < parts; ++part)
      buildPart(builder, part, terminator);
    for (OpOperand &operand : terminator->getOpOperands())
      operand.set(returned[operand.get()]);
  }

  void buildPart(OpBuilder &builder, size_t part, Operation *terminator) {
    // A returned value leaves from the part that computes it; what is no trunk, from the first.
    llvm::SetVector<Value> results;
    for (Value value : terminator->getOperands())
      if (partOf.lookup(value.getDefiningOp()) == part)
        results.insert(value);
    size_t numReturned = results.size();
    SmallVector<Operation *> ops;
    SmallVector<Value> inputs;
    collect(part, results.getArrayRef(), ops, inputs);
    llvm::DenseSet<Value> leaving;
    for (Operation *op : trunk)
      for (Value result : op->getResults())
        if (leaves(op, result, part)) {
          leaving.insert(result);
          results.insert(result);
        }

    SmallVector<Value> operands;
    for (Value input : inputs)
      operands.push_back(isa<BlockArgument>(input) ? input : arrived.lookup(input));
    Location place = results.empty() ? function.getLoc() : results.front().getLoc();
    auto types = llvm::map_to_vector(results, [](Value value) { return value.getType(); });
    auto program = pipe::StageOp::create(builder, place, types, part % stages, part / stages,
                                         pipe::ProgramKind::forward, operands);
    Block *body = new Block();
    program.getBody().push_back(body);
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
        returned[value] = program.getResult(index);
      if (leaving.contains(value))
        arrived[value] =
            stages > 1 ? transfer(builder, value, program.getResult(index), part) : program.getResult(index);
    }
  }

  /// To the stage of the next part.
  Value transfer(OpBuilder &builder, Value value, Value result, size_t part) {
    size_t from = part % stages, to = (part + 1) % stages;
    size_t source = partOf.lookup(value.getDefiningOp());
    std::string cause = "pipeline stage " + std::to_string(to) + " reads what stage " +
                        std::to_string(source % stages) + " computes" +
                        (source == part ? "" : "; it comes through stage " + std::to_string(from));
    auto transfer =
        pipe::TransferOp::create(builder, value.getLoc(), value.getType(), result, from, to,
                                 builder.getStringAttr(cause), builder.getStringAttr("fewer stages (--pp)"));
    setValueIds(transfer, {{}, valueIdsOf(value.getDefiningOp()).made}); // what --verify should find on arrival
    return transfer;
  }
};

struct SplitStages : impl::SplitStagesBase<SplitStages> {
  using SplitStagesBase::SplitStagesBase;

  /// How many blocks every part gets. Where the sidecar has rules of stages, `blocks` become those that they make.
  std::optional<std::vector<size_t>> chooseCounts(func::FuncOp function, Blocks &blocks) {
    Expected<std::optional<Sidecar>> sidecar = sidecarOf(getOperation());
    if (sidecar.ok() && (!*sidecar || (*sidecar)->stages.empty() || stages < 1 || chunks < 1))
      return chooseSplit(function, blocks, stages, chunks, split);
    Status status = sidecar.status();
    if (status.ok() && split != "balanced")
      status = Status::error(ErrorKind::Usage, "--pp-split=" + split + " and the rules of \"stages\" in " +
                                                   (*sidecar)->file + " both cut the program; leave one of them out");
    if (status.ok()) {
      Expected<Blocks> cut = cutByRules(function, blocks, stages, chunks, **sidecar);
      if (cut.ok()) {
        blocks = *cut;
        return std::vector<size_t>(blocks.size(), 1);
      }
      status = cut.status();
    }
    userError(function, status.kind()) << status.message();
    return std::nullopt;
  }

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    // 1. Where the program may be cut, and which cuts to take.
    Blocks blocks = findBlocks(function, size_t(std::max<int64_t>(stages, 1) * std::max<int64_t>(chunks, 1)));
    std::optional<std::vector<size_t>> counts = chooseCounts(function, blocks);
    if (!counts)
      return signalPassFailure();
    // 2. Clone every op into its part.
    SmallVector<Operation *> old;
    for (Operation &op : function.getBody().front().without_terminator())
      old.push_back(&op);
    OpBuilder builder(&getContext());
    Splitter(function, blocks, *counts, size_t(stages)).build(builder);
    // 3. Drop what was there before.
    for (Operation *op : llvm::reverse(old))
      op->erase();
  }
};
} // namespace

} // namespace hpc
