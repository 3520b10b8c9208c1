// Walks back from the values that the program's ops read and from the wanted ones.
#include "passes/Stage/ProgramBody.h"

namespace hpc {

ProgramBody findBody(ArrayRef<Operation *> own, ArrayRef<Value> wanted, llvm::function_ref<bool(Value)> comesFrom) {
  llvm::DenseSet<Operation *> needed(own.begin(), own.end());
  SmallVector<Value> pending(wanted);
  for (Operation *op : own)
    llvm::append_range(pending, op->getOperands());
  llvm::SetVector<Value> arguments, given;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation *producer = value.getDefiningOp();
    if (!producer)
      arguments.insert(value);
    else if (needed.contains(producer))
      continue;
    else if (comesFrom(value))
      given.insert(value);
    else if (needed.insert(producer).second)
      llvm::append_range(pending, producer->getOperands());
  }
  // In program order, without a walk along all other programs.
  ProgramBody body{{}, SmallVector<Operation *>(needed.begin(), needed.end())};
  llvm::sort(body.ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  SmallVector<Value> outside = arguments.takeVector();
  llvm::sort(outside, [](Value a, Value b) { return cast<BlockArgument>(a).getArgNumber() < cast<BlockArgument>(b).getArgNumber(); });
  body.outside.insert(outside.begin(), outside.end());
  outside = given.takeVector();
  llvm::sort(outside, [](Value a, Value b) {
    Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
    return first == second ? cast<OpResult>(a).getResultNumber() < cast<OpResult>(b).getResultNumber() : first->isBeforeInBlock(second);
  });
  body.outside.insert(outside.begin(), outside.end());
  return body;
}

pipe::StageOp createProgram(OpBuilder &builder, Location place, size_t stage, size_t chunk, pipe::ProgramKind kind,
                            const ProgramBody &body, ArrayRef<Value> operands, ArrayRef<Value> yields) {
  auto types = llvm::map_to_vector(yields, [](Value value) { return value.getType(); });
  auto program = pipe::StageOp::create(builder, place, types, stage, chunk, kind, operands);
  Block *block = new Block();
  program.getBody().push_back(block);
  IRMapping mapping;
  for (Value value : body.outside)
    mapping.map(value, block->addArgument(value.getType(), value.getLoc()));
  OpBuilder inside = OpBuilder::atBlockEnd(block);
  for (Operation *op : body.ops)
    inside.clone(*op, mapping);
  pipe::YieldOp::create(inside, place,
                        llvm::map_to_vector(yields, [&](Value value) { return mapping.lookup(value); }));
  return program;
}

} // namespace hpc
