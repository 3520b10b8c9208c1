// Updates of parameters and states in place: the region that computes the next value of one reads it at the same elements
// and is its last reader, so that lower need not copy it back at the end of a step.
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Providers.h"
#include "passes/Kernels/InPlace.h"
#include "passes/Kernels/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_WRITEINPLACE
#include "passes/Kernels/Passes.h.inc"

namespace {
/// The result of a region that a result of the function is; null where another op made it.
OpResult madeBy(Value returned) {
  auto result = dyn_cast<OpResult>(returned);
  while (result && isa<pipe::StageOp>(result.getOwner()))
    result = dyn_cast<OpResult>(
        result.getOwner()->getRegion(0).front().getTerminator()->getOperand(result.getResultNumber()));
  return result && isa<nn::FusedOp>(result.getOwner()) ? result : OpResult();
}

/// Whether an op is in another stage than the region, which has a buffer of its own.
bool isElsewhere(Operation *op, nn::FusedOp region) {
  auto here = region->getParentOfType<pipe::StageOp>();
  auto there = isa<pipe::StageOp>(op) ? cast<pipe::StageOp>(op) : op->getParentOfType<pipe::StageOp>();
  return here && there && here.getIndex() != there.getIndex();
}

/// All values that lie in the buffer of a parameter or state that the region's stage has: arguments of programs and
/// aliases included.
SmallVector<Value> valuesOf(func::FuncOp function, const std::string &name, nn::FusedOp region) {
  SmallVector<Value> values;
  function.walk([&](nn::ParameterOp op) {
    if (op.getName() == name && !isElsewhere(op, region))
      values.push_back(op.getResult());
  });
  for (BlockArgument argument : function.getArguments())
    if (nn::argumentPort(function, argument.getArgNumber()).state == name)
      values.push_back(argument);
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses())
      if (isElsewhere(use.getOwner(), region))
        continue;
      else if (auto stage = dyn_cast<pipe::StageOp>(use.getOwner()))
        values.push_back(stage.getBody().getArgument(use.getOperandNumber()));
      else if (isBufferAlias(use.getOwner()))
        values.push_back(use.getOwner()->getResult(0));
  return values;
}

/// Whether an op is done with its operands before the region runs. Stages are listed in the order in which the programs
/// of one stage run.
bool isBefore(Operation *op, nn::FusedOp region) {
  if (op->getBlock() == region->getBlock())
    return op->isBeforeInBlock(region);
  auto here = region->getParentOfType<pipe::StageOp>();
  Operation *there = here ? here->getBlock()->findAncestorOpInBlock(*op) : nullptr;
  return there && there->isBeforeInBlock(here);
}

/// The operand that the result may be written over, given all values in the buffer that it goes to.
std::optional<unsigned> operandToWriteOver(nn::FusedOp region, unsigned result, ArrayRef<Value> written) {
  std::optional<unsigned> found;
  for (auto [index, operand] : llvm::enumerate(region.getOperands()))
    if (llvm::is_contained(written, operand)) {
      if (found)
        return std::nullopt; // read over two ways, as a parameter and its reshape
      found = unsigned(index);
    }
  if (!found || !kernels::canWriteOver(region, result, *found))
    return std::nullopt;
  for (Value value : written)
    for (Operation *user : value.getUsers())
      if (user != region && !isa<pipe::StageOp>(user) && !isBufferAlias(user) && !isBefore(user, region))
        return std::nullopt;
  return found;
}

struct WriteInPlacePass : impl::WriteInPlaceBase<WriteInPlacePass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Operation *returned = function.getBody().front().getTerminator();
      for (unsigned index = 0; index < function.getNumResults(); ++index) {
        std::string name = nn::resultPort(function, index).writes;
        if (name.empty())
          continue;
        OpResult result = madeBy(returned->getOperand(index));
        if (!result)
          continue;
        auto region = cast<nn::FusedOp>(result.getOwner());
        unsigned number = result.getResultNumber();
        std::optional<unsigned> operand = operandToWriteOver(region, number, valuesOf(function, name, region));
        if (!operand)
          continue;
        SmallVector<int64_t> inPlace(region.getNumResults(), -1);
        if (region.getInPlace())
          inPlace.assign(region.getInPlace()->begin(), region.getInPlace()->end());
        inPlace[number] = *operand;
        region.setInPlace(inPlace);
      }
    }
    // Kernels that write to different places are different kernels.
    getOperation().walk([](nn::FusedOp region) {
      std::optional<ArrayRef<int64_t>> inPlace = region.getInPlace();
      if (!inPlace)
        return;
      std::string symbol = region.getSymbol().str();
      for (int64_t operand : *inPlace)
        symbol += operand < 0 ? "_new" : "_over" + std::to_string(operand);
      region.setSymbol(symbol);
    });
  }
};
} // namespace
} // namespace hpc
