// Takes what is computed once a step out of the programs that run once a micro-batch. What accumulations feed goes to the
// update program; the accumulations stay, since each micro-batch adds its term; what both need and is once a step by itself
// (parameters, constants, functions of them) is in both.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/Location.h"
#include "passes/Stage/Passes.h"

#include "llvm/ADT/SetVector.h"

namespace hpc {

#define GEN_PASS_DEF_SPLITUPDATES
#include "passes/Stage/Passes.h.inc"

namespace {
/// Splits one forward program.
class UpdateSplitter {
public:
  explicit UpdateSplitter(pipe::StageOp program) : program(program), body(program.getBody().front()) {}

  /// Finds what belongs to the update; false when nothing does. With one micro-batch nothing is accumulated, and the forward
  /// program is run once a step anyway.
  bool find() {
    for (Operation &op : body.without_terminator()) {
      bool readsTotal = llvm::any_of(op.getOperands(), [&](Value operand) { return isTotal(operand); });
      if (readsTotal)
        updates.insert(&op);
      if (readsTotal || isa<dist::AccumulateOp>(op))
        totals.insert(op.result_begin(), op.result_end());
    }
    bool isOnce = dist::meshOf(program).sizeOf(dist::AxisRole::Time) == 1;
    for (auto [result, value] : llvm::zip(program.getResults(), body.getTerminator()->getOperands()))
      inUpdate.push_back(isTotal(value) || (!isOnce && isWritten(result)));
    return llvm::is_contained(inUpdate, true);
  }

  /// A total is known after the last micro-batch; another stage would get it in each of them.
  LogicalResult check() {
    if (program.getChunk() != 0)
      return userError(program, ErrorKind::Unsupported)
             << "a sum over all micro-batches or a written value is in chunk " << program.getChunk()
             << " of its stage, and a stage has one update; use --pp-chunks=1";
    for (auto [result, value] : llvm::zip(program.getResults(), body.getTerminator()->getOperands()))
      if (isTotal(value))
        for (Operation *user : result.getUsers())
          if (!isa<func::ReturnOp>(user))
            return userError(value.getLoc(), ErrorKind::Unsupported)
                   << "a sum over all micro-batches, of '" << nodeName(value.getLoc())
                   << "', is read by another stage; use --pp=1";
    return success();
  }

  void split() {
    OpBuilder builder(program->getContext());
    builder.setInsertionPointAfter(program);
    findShared();
    makeForward(builder);
    makeUpdate(builder);
    replaceResults();
    program.erase();
  }

private:
  bool isTotal(Value value) const { return totals.contains(value); }

  /// Whether a result is what a parameter or state is from the next step on: writing it in each micro-batch would change
  /// what the next one reads.
  static bool isWritten(Value result) {
    return llvm::any_of(result.getUses(), [](OpOperand &use) {
      auto function = dyn_cast<func::FuncOp>(use.getOwner()->getParentOp());
      return isa<func::ReturnOp>(use.getOwner()) && function &&
             !nn::resultPort(function, use.getOperandNumber()).writes.empty();
    });
  }

  SmallVector<Value> yields(bool ofUpdate) {
    SmallVector<Value> values;
    for (auto [value, isLate] : llvm::zip(body.getTerminator()->getOperands(), inUpdate))
      if (isLate == ofUpdate)
        values.push_back(value);
    return values;
  }

  /// What an update needs that is no accumulation and no argument is once a step by itself: it is computed in the update.
  void findShared() {
    SmallVector<Operation *> pending(updates.begin(), updates.end());
    auto need = [&](Value value) {
      Operation *producer = value.getDefiningOp();
      if (producer && !isa<dist::AccumulateOp>(producer) && !updates.contains(producer) && shared.insert(producer).second)
        pending.push_back(producer);
    };
    llvm::for_each(yields(/*ofUpdate=*/true), need);
    while (!pending.empty())
      for (Value operand : pending.pop_back_val()->getOperands())
        need(operand);
  }

  /// All but the updates; accumulations leave it beside what it returned.
  void makeForward(OpBuilder &builder) {
    for (Operation &op : body)
      if (auto accumulate = dyn_cast<dist::AccumulateOp>(op))
        accumulated.push_back(accumulate.getResult());
    SmallVector<Value> leaving = yields(/*ofUpdate=*/false);
    llvm::append_range(leaving, accumulated);
    SmallVector<Operation *> ops;
    for (Operation &op : body.without_terminator())
      if (!updates.contains(&op))
        ops.push_back(&op);
    forward = make(builder, pipe::ProgramKind::forward, ops, {}, {}, leaving);
  }

  void makeUpdate(OpBuilder &builder) {
    SmallVector<Operation *> ops;
    for (Operation &op : body.without_terminator())
      if (updates.contains(&op) || shared.contains(&op))
        ops.push_back(&op);
    update = make(builder, pipe::ProgramKind::update, ops, accumulated,
                  forward.getResults().take_back(accumulated.size()), yields(/*ofUpdate=*/true));
  }

  /// A program of `ops`; `inside` values of the old body arrive as the operands `outside`, and so do the old program's own
  /// operands that it reads.
  pipe::StageOp make(OpBuilder &builder, pipe::ProgramKind kind, ArrayRef<Operation *> ops, ValueRange inside,
                     ValueRange outside, ArrayRef<Value> yields) {
    llvm::DenseSet<Value> read(yields.begin(), yields.end());
    llvm::SmallPtrSet<Operation *, 32> live;
    for (Operation *op : llvm::reverse(ops)) // what only updates read is dead in the forward program
      if (llvm::any_of(op->getResults(), [&](Value value) { return read.contains(value); })) {
        live.insert(op);
        read.insert(op->operand_begin(), op->operand_end());
      }
    SmallVector<Value> operands;
    Block *block = new Block();
    IRMapping mapping;
    auto take = [&](Value old, Value operand) {
      operands.push_back(operand);
      mapping.map(old, block->addArgument(old.getType(), old.getLoc()));
    };
    for (auto [argument, operand] : llvm::zip(body.getArguments(), program.getOperands()))
      if (read.contains(argument))
        take(argument, operand);
    for (auto [old, operand] : llvm::zip(inside, outside))
      if (read.contains(old))
        take(old, operand);
    auto types = llvm::map_to_vector(yields, [](Value value) { return value.getType(); });
    auto made = pipe::StageOp::create(builder, program.getLoc(), types, program.getIndex(), program.getChunk(), kind,
                                      operands);
    made.getBody().push_back(block);
    OpBuilder into = OpBuilder::atBlockEnd(block);
    for (Operation *op : ops)
      if (live.contains(op))
        into.clone(*op, mapping);
    pipe::YieldOp::create(into, program.getLoc(),
                          llvm::map_to_vector(yields, [&](Value value) { return mapping.lookup(value); }));
    return made;
  }

  void replaceResults() {
    unsigned nextForward = 0, nextUpdate = 0;
    for (auto [result, isLate] : llvm::zip(program.getResults(), inUpdate))
      result.replaceAllUsesWith(isLate ? update.getResult(nextUpdate++) : forward.getResult(nextForward++));
  }

  pipe::StageOp program, forward, update;
  Block &body;
  llvm::DenseSet<Value> totals; ///< accumulations, and what depends on them
  llvm::SetVector<Operation *> updates;
  llvm::DenseSet<Operation *> shared;
  SmallVector<Value> accumulated;
  SmallVector<bool> inUpdate; ///< by result of the program: whether it is known once a step
};

struct SplitUpdates : impl::SplitUpdatesBase<SplitUpdates> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    SmallVector<pipe::StageOp> programs(function.getBody().front().getOps<pipe::StageOp>());
    for (pipe::StageOp program : programs) {
      UpdateSplitter splitter(program);
      if (program.getProgram() != pipe::ProgramKind::forward || !splitter.find())
        continue;
      if (failed(splitter.check()))
        return signalPassFailure();
      splitter.split();
    }
  }
};
} // namespace

} // namespace hpc
