// Rewrites programs once the kept values are chosen: an op to repeat is cloned in front of the op that reads it, so
// that its result lives no longer than the block's gradients need it. Clones are the same ops in forward's order, and
// kernels add in the same order whatever ops are around them, hence equal bits.
#include "passes/Recompute/KeptValues.h"
#include "passes/Recompute/Passes.h"

#include "compiler/BlockMark.h"
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Interfaces/Collective.h"
#include "compiler/Dialect/Pipe/Schedule.h"
#include "compiler/ModuleAttributes.h"
#include "compiler/StepPart.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"

namespace hpc {

#define GEN_PASS_DEF_RECOMPUTE
#include "passes/Recompute/Passes.h.inc"

namespace {
/// The block in which forward's ops are run again: a program that reads forward's results, or forward itself.
class Repeater {
public:
  /// `reader` is null for forward itself.
  Repeater(ForwardPart &part, const KeptValues &kept, pipe::StageOp reader) : part(part), kept(kept), reader(reader) {
    for (auto [index, op] : llvm::enumerate(part.ops))
      order[op] = index;
    if (!reader)
      return;
    Operation *yield = part.forward.getBody().front().getTerminator();
    for (auto [operand, argument] : llvm::zip(reader.getOperands(), reader.getBody().getArguments())) {
      Value value;
      if (auto result = dyn_cast<OpResult>(operand); result && result.getOwner() == part.forward)
        value = yield->getOperand(result.getResultNumber());
      for (auto [own, inside] : llvm::zip(part.forward.getOperands(), part.forward.getBody().getArguments()))
        if (own == operand)
          value = inside; // an argument of the function that both read
      valueOf[argument] = value;
      if (value && !isAgain(value))
        here[value] = argument;
    }
  }

  /// Clones the ops to repeat. Arguments that a reader no longer reads are removed, with their operands; new ones get
  /// theirs by `takeOperands`.
  void run() {
    Block &block = reader ? reader.getBody().front() : part.forward.getBody().front();
    SmallVector<Operation *> gradients;
    for (Operation &op : block)
      if (reader || (!part.has(&op) && !isa<pipe::YieldOp>(op)))
        gradients.push_back(&op);
    for (Operation *op : gradients)
      for (OpOperand &use : op->getOpOperands())
        if (Value value = forwardValue(use.get()); value && isAgain(value)) {
          repeat(value, op);
          use.set(here.lookup(value));
        }
    if (!reader)
      return;
    for (unsigned index = reader->getNumOperands(); index-- > 0;)
      if (block.getArgument(index).use_empty()) {
        block.eraseArgument(index);
        reader->eraseOperand(index);
      }
  }

  /// Values of forward's body that the reader takes and did not take before.
  ArrayRef<Value> taken() const { return added; }
  void takeOperands(llvm::function_ref<Value(Value)> resultOf) {
    for (Value value : added)
      reader.getOperandsMutable().append(resultOf(value));
  }

private:
  /// The value of forward that a value of the block corresponds to; null where there is none.
  Value forwardValue(Value value) const {
    if (!reader)
      return part.has(value.getDefiningOp()) ? value : Value();
    return valueOf.lookup(value);
  }
  bool isAgain(Value value) const { return value.getDefiningOp() && kept.again.contains(value.getDefiningOp()); }

  /// The block's own value for a value of forward's body that is not repeated.
  Value take(Value value) {
    if (!reader)
      return value;
    if (Value known = here.lookup(value))
      return known;
    Block &body = reader.getBody().front();
    Operation *producer = value.getDefiningOp();
    if (producer && producer->getNumOperands() == 0) // a parameter, a constant
      return here[value] = OpBuilder(&body, body.begin()).clone(*producer)->getResult(0);
    added.push_back(value);
    return here[value] = body.addArgument(value.getType(), value.getLoc());
  }

  /// Clones the ops that compute `value` and are not here yet, in front of `op`.
  void repeat(Value value, Operation *op) {
    SmallVector<Operation *> chain;
    llvm::DenseSet<Operation *> seen;
    SmallVector<Value> open{value};
    while (!open.empty()) {
      Value next = open.pop_back_val();
      if (!isAgain(next) || here.contains(next) || !seen.insert(next.getDefiningOp()).second)
        continue;
      chain.push_back(next.getDefiningOp());
      llvm::append_range(open, next.getDefiningOp()->getOperands());
    }
    llvm::sort(chain, [&](Operation *a, Operation *b) { return order.lookup(a) < order.lookup(b); });
    OpBuilder builder(op);
    for (Operation *original : chain) {
      IRMapping mapping;
      for (Value operand : original->getOperands())
        mapping.map(operand, isAgain(operand) ? here.lookup(operand) : take(operand));
      Operation *clone = builder.clone(*original, mapping);
      clone->setLoc(repeatedLocation(original->getLoc()));
      if (auto collective = dyn_cast<CollectiveOpInterface>(clone); collective && collective.getCauseAttr())
        collective.setCauseAttr(builder.getStringAttr(collective.getCauseAttr().getValue() + "; run again for the gradients (--recompute)"));
      for (auto [result, copy] : llvm::zip(original->getResults(), clone->getResults()))
        here[result] = copy;
    }
  }

  ForwardPart &part;
  const KeptValues &kept;
  pipe::StageOp reader;
  llvm::DenseMap<Operation *, size_t> order;
  llvm::DenseMap<Value, Value> valueOf; ///< by the reader's argument: the value in forward
  llvm::DenseMap<Value, Value> here;    ///< by forward's value: the value in the block
  SmallVector<Value> added;             ///< by new argument of the reader: the value in forward
};

/// Gives forward, besides the results still read, those that its readers take, and the readers their operands.
void connect(ForwardPart &part, ArrayRef<Repeater *> readers) {
  pipe::StageOp old = part.forward;
  Operation *yield = old.getBody().front().getTerminator();
  llvm::MapVector<Value, SmallVector<OpResult>> given; // by value: the results that it was
  for (auto [result, value] : llvm::zip(old.getResults(), yield->getOperands()))
    if (!result.use_empty())
      given[value].push_back(cast<OpResult>(result));
  auto argumentOfFunction = [&](Value value) -> Value {
    auto inside = dyn_cast<BlockArgument>(value);
    Value operand = inside ? old.getOperand(inside.getArgNumber()) : Value();
    return isa_and_present<BlockArgument>(operand) ? operand : Value();
  };
  for (Repeater *reader : readers)
    for (Value value : reader->taken())
      if (!argumentOfFunction(value))
        given.insert({value, {}});
  SmallVector<Value> yields = llvm::map_to_vector(given, [](auto &entry) { return entry.first; });
  SmallVector<Type> types = llvm::map_to_vector(yields, [](Value value) { return value.getType(); });
  yield->setOperands(yields);
  OpBuilder builder(old);
  auto forward = pipe::StageOp::create(builder, old.getLoc(), types, old.getIndex(), old.getChunk(), old.getProgram(),
                                       old.getOperands());
  llvm::DenseMap<Value, Value> resultOf;
  for (auto [entry, result] : llvm::zip(given, forward.getResults())) {
    resultOf[entry.first] = result;
    for (OpResult before : entry.second)
      before.replaceAllUsesWith(result);
  }
  for (Repeater *reader : readers)
    reader->takeOperands([&](Value value) {
      Value argument = argumentOfFunction(value);
      return argument ? argument : resultOf.lookup(value);
    });
  forward.getBody().takeBody(old.getBody());
  old.erase();
  part.forward = forward;
}

void recompute(ForwardPart &part, const KeptValues &kept) {
  std::vector<Repeater> repeaters;
  if (part.readers.empty())
    repeaters.emplace_back(part, kept, pipe::StageOp());
  for (pipe::StageOp reader : part.readers)
    repeaters.emplace_back(part, kept, reader);
  for (Repeater &repeater : repeaters)
    repeater.run();
  if (!part.readers.empty())
    connect(part, llvm::map_to_vector(repeaters, [](Repeater &repeater) { return &repeater; }));
  for (Operation *op : llvm::reverse(part.ops)) // forward does not compute values that only gradients have read
    if (op->use_empty())
      op->erase();
}

struct RecomputePass : impl::RecomputeBase<RecomputePass> {
  using RecomputeBase::RecomputeBase;

  std::optional<RecomputePolicy> readPolicy() const {
    return llvm::StringSwitch<std::optional<RecomputePolicy>>(policy.getValue())
        .Case("none", RecomputePolicy::None)
        .Case("attention", RecomputePolicy::Attention)
        .Case("full", RecomputePolicy::Full)
        .Case("auto", RecomputePolicy::Auto)
        .Default(std::nullopt);
  }

  /// The values to keep of each part, in order; parts of one stage share its budget.
  SmallVector<KeptValues> choose(ArrayRef<ForwardPart> parts, RecomputePolicy policy) {
    const Prices prices = pricesOf(getOperation());
    SmallVector<KeptValues> choices(parts.size());
    std::map<int64_t, SmallVector<size_t>> byStage;
    for (auto [index, part] : llvm::enumerate(parts))
      byStage[part.stage()].push_back(index);
    for (auto &[stage, indices] : byStage) {
      SmallVector<const ForwardPart *> ofStage;
      for (size_t index : indices)
        ofStage.push_back(&parts[index]);
      int64_t budget = size_t(stage) < budgets.size() ? budgets[size_t(stage)] : std::numeric_limits<int64_t>::max();
      SmallVector<KeptValues> chosen;
      if (policy == RecomputePolicy::Auto)
        chosen = chooseWithin(ofStage, budget, prices);
      else
        for (const ForwardPart *part : ofStage)
          chosen.push_back(chooseKept(*part, policy, prices, [](int64_t) { return highestPrice; }));
      for (auto [index, kept] : llvm::zip(indices, chosen))
        choices[index] = std::move(kept);
    }
    return choices;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto function = module.lookupSymbol<func::FuncOp>("main");
    if (!function || function.isExternal())
      return;
    // 1. The policy.
    std::optional<RecomputePolicy> wanted = readPolicy();
    if (!wanted) {
      userError(function, ErrorKind::Usage)
          << "--recompute=" << policy << " is unknown; use none, attention, full or auto";
      return signalPassFailure();
    }
    Expected<plan::PipelineSchedule> schedule = pipe::readSchedule(function);
    if (!schedule.ok()) {
      userError(function, schedule.status().kind()) << schedule.status().message();
      return signalPassFailure();
    }
    // 2. The values to keep.
    std::vector<ForwardPart> parts = findForwardParts(function, *schedule, panels);
    SmallVector<KeptValues> choices = choose(parts, *wanted);
    // 3. Other values are computed again where they are read.
    SmallVector<int64_t> bytes(schedule->size(), 0);
    for (auto [part, kept] : llvm::zip(parts, choices)) {
      bytes[size_t(part.stage())] += kept.bytes;
      mlir::emitRemark(part.forward.getLoc())
          << "[hpc-recompute] stage " << part.stage() << ", chunk " << part.forward.getChunk() << " keeps "
          << kept.bytes << " bytes for backward (" << part.slots << " micro-batches at once) and runs "
          << kept.again.size() << " of " << part.ops.size() << " ops again";
      recompute(part, kept);
    }
    setKeptBytes(module, bytes);
    function.walk([](Operation *op) { removeBlockMark(op); });
  }
};
} // namespace

} // namespace hpc
