// One walk separates values that differ by micro-batch from numbers of the whole step; an op that reads both gets the
// number from whole inputs, if that repeats no product.
#include "compiler/Dialect/NN/BatchFlow.h"
#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/StepPart.h"
#include "passes/Train/Passes.h"
#include "passes/Train/StepFunction.h"

namespace hpc {

#define GEN_PASS_DEF_HOLDWHOLEINPUTS
#include "passes/Train/Passes.h.inc"

namespace {

/// Copies of ops that read whole inputs. An op that several copies depend on is copied once, before their first reader.
class WholeCopies {
public:
  WholeCopies(func::FuncOp function, StepFunction &step, ArrayRef<std::optional<int64_t>> batchDims)
      : function(function), step(step), batchDims(batchDims) {}

  /// The value from whole inputs, before `reader`; null where it depends on more.
  Value of(Value value, Operation *reader) {
    SmallVector<Operation *> ops;
    if (!findOps(value, ops))
      return {};
    OpBuilder builder(reader);
    for (Operation *op : ops) {
      if (copies.contains(op->getResult(0)))
        continue;
      for (Value operand : op->getOperands())
        if (auto input = dyn_cast<BlockArgument>(operand); input && !copies.contains(input))
          copies.map(input, wholeOf(input));
      Operation *copy = builder.clone(*op, copies);
      if (stepPartOf(op->getLoc()) == StepPart::Update) // an update runs once a step, after all micro-batches
        copy->setLoc(reader->getLoc());
    }
    return copies.lookup(value);
  }

private:
  /// The ops that compute the value from inputs, in program order; false where they include a product or a cut input
  /// without a name.
  bool findOps(Value value, SmallVector<Operation *> &ops) const {
    llvm::SetVector<Operation *> open;
    auto add = [&](Value read) {
      auto input = dyn_cast<BlockArgument>(read);
      if (!input)
        open.insert(read.getDefiningOp());
      return !input || !isCut(input) || !nn::argumentPort(function, input.getArgNumber()).name.empty();
    };
    bool isCheap = add(value);
    for (size_t next = 0; isCheap && next < open.size(); ++next) {
      Operation *op = open[next];
      isCheap = !nn::isProduct(op) && op->getNumRegions() == 0 && llvm::all_of(op->getOperands(), add);
    }
    llvm::copy_if(open, std::back_inserter(ops), [](Operation *op) { return op->getNumOperands() > 0; });
    llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return isCheap && !ops.empty();
  }

  /// Whole inputs, which this pass has added, are not cut.
  bool isCut(BlockArgument input) const {
    return input.getArgNumber() < batchDims.size() && batchDims[input.getArgNumber()].has_value();
  }

  Value wholeOf(BlockArgument input) {
    if (!isCut(input))
      return input;
    nn::ArgumentPort port;
    port.wholeOf = nn::argumentPort(function, input.getArgNumber()).name;
    return step.addArgument(nn::tensorType(input), port, input.getLoc());
  }

  func::FuncOp function;
  StepFunction &step;
  ArrayRef<std::optional<int64_t>> batchDims;
  IRMapping copies;
};

struct HoldWholeInputs : impl::HoldWholeInputsBase<HoldWholeInputs> {
  using HoldWholeInputsBase::HoldWholeInputsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function || microBatches <= 1)
      return;
    auto batchDims = nn::findBatchDims(function, batchDim);
    if (failed(batchDims))
      return signalPassFailure();
    StepFunction step(function);
    nn::BatchFlow flow(function, *batchDims);
    WholeCopies copies(function, step, *batchDims);
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front().without_terminator()))
      if (flow.visit(&op))
        for (OpOperand &operand : op.getOpOperands())
          if (flow.isTotal(operand.get()))
            if (Value whole = copies.of(operand.get(), &op))
              operand.set(whole);
    step.write();
    eraseDeadOps(function);
  }
};
} // namespace

} // namespace hpc
