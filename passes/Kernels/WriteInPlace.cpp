// Updates of parameters and states in place: the region that computes the next value of one reads it at the same elements
// and is its last reader, so that lower need not copy it back at the end of a step. So are the largest temporaries: logits
// become their gradient where they are.
#include "compiler/Accumulations.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ImplicitWindows.h"
#include "compiler/Providers.h"
#include "passes/Kernels/Elements/RowComposites.h"
#include "passes/Kernels/Fusion/InPlace.h"
#include "passes/Kernels/Passes.h"
#include "passes/Kernels/Regions/EpilogueRegion.h"

namespace hpc {
#define GEN_PASS_DEF_WRITEINPLACE
#include "passes/Kernels/Passes.h.inc"

namespace {
/// The result of a region that a result of the function is, through programs that hand it on; null where another op made it.
OpResult madeBy(Value returned) {
  for (;;) {
    auto argument = dyn_cast<BlockArgument>(returned);
    auto stage = dyn_cast_or_null<pipe::StageOp>(argument ? argument.getOwner()->getParentOp() : returned.getDefiningOp());
    if (!stage)
      break;
    returned = argument ? stage->getOperand(argument.getArgNumber())
                        : stage.getBody().front().getTerminator()->getOperand(cast<OpResult>(returned).getResultNumber());
  }
  auto result = dyn_cast<OpResult>(returned);
  return result && isa<nn::FusedOp>(result.getOwner()) ? result : OpResult();
}

/// Whether an op is in another stage than the region, which has a buffer of its own.
bool isElsewhere(Operation *op, nn::FusedOp region) {
  auto here = region->getParentOfType<pipe::StageOp>();
  auto there = isa<pipe::StageOp>(op) ? cast<pipe::StageOp>(op) : op->getParentOfType<pipe::StageOp>();
  return here && there && here.getIndex() != there.getIndex();
}

/// By name: the ops of each parameter and the arguments of each state.
using Holders = llvm::StringMap<SmallVector<Value>>;
Holders findHolders(func::FuncOp function) {
  Holders holders;
  function.walk([&](nn::ParameterOp op) { holders[op.getName()].push_back(op.getResult()); });
  for (BlockArgument argument : function.getArguments())
    if (std::string state = nn::argumentPort(function, argument.getArgNumber()).state; !state.empty())
      holders[state].push_back(argument);
  return holders;
}

/// All values that lie in the buffer of a parameter or state that the region's stage has: arguments of programs and
/// aliases included.
SmallVector<Value> valuesOf(const Holders &holders, const std::string &name, nn::FusedOp region) {
  SmallVector<Value> values;
  for (Value holder : holders.lookup(name))
    if (isa<BlockArgument>(holder) || !isElsewhere(holder.getDefiningOp(), region))
      values.push_back(holder);
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

/// The operand that the result may overwrite, given all values in the result's target buffer.
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

/// Whether each reader of a value, aliases included, is in its block and `isAllowed`. Where the terminator reads a value,
/// lower gives it a buffer that outlives the program.
bool isReadBy(Value value, llvm::function_ref<bool(Operation *)> isAllowed) {
  SmallVector<Value> values{value};
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (isBufferAlias(user))
        values.push_back(user->getResult(0));
      else if (user->hasTrait<OpTrait::IsTerminator>() || !isAllowed(user))
        return false;
    }
  return true;
}

/// The product of a convolution if the value is its reshape to an image; otherwise the value itself.
Value convolvedFrom(Value value) {
  auto product = aliasRoot(value).getDefiningOp<nn::MatmulOp>();
  bool isConvolution = product && aliasRoot(product.getLhs()).getDefiningOp<nn::ParameterOp>() && !product.getTransposeLhs();
  return isConvolution ? Value(product.getResult()) : value;
}

/// Whether a value is this block's own temporary, which nothing reads after the region.
bool diesIn(nn::FusedOp region, Value value) {
  value = convolvedFrom(value);
  Operation *maker = value.getDefiningOp();
  auto fused = dyn_cast_or_null<nn::FusedOp>(maker);
  if (!maker || maker->getBlock() != region->getBlock() ||
      !(fused ? fused.inPlaceOperand(cast<OpResult>(value).getResultNumber()) < 0
              : providerOf(maker) == Provider::Library || addsInProduct(maker)))
    return false;
  return isReadBy(value, [&](Operation *user) { return user == region || user->isBeforeInBlock(region); });
}

int64_t elementsOf(Value value) { return nn::tensorType(value).getNumElements(); }

/// Whether the operand is a GEMM's result and the region its epilogue.
bool isFinished(nn::FusedOp region, size_t operand) {
  std::optional<plan::Epilogue> epilogue = kernels::findEpilogue(region);
  return epilogue && size_t(epilogue->product) == operand;
}

/// Lets regions overwrite operands without later readers, if the tensor is at least half as large as the block's
/// largest: each target is a kernel of its own, so smaller ones are not worth it. But epilogues always overwrite their
/// GEMM's result, so that a device may do both at once, whatever else the block has.
void writeOverTemporaries(Block &block) {
  int64_t largest = 0;
  for (Operation &op : block)
    if (!isa<nn::ParameterOp>(op))
      for (Value result : op.getResults())
        if (!isSeenAsWindows(result)) // which is not in memory
          largest = std::max(largest, elementsOf(result));
  for (auto region : block.getOps<nn::FusedOp>()) {
    SmallVector<int64_t> inPlace(region.getNumResults(), -1);
    if (region.getInPlace())
      inPlace.assign(region.getInPlace()->begin(), region.getInPlace()->end());
    bool changed = false;
    for (OpResult result : region.getResults())
      for (auto [number, operand] : llvm::enumerate(region.getOperands())) {
        auto isSame = [&, value = operand](Value other) { return aliasRoot(other) == aliasRoot(value); };
        if (inPlace[result.getResultNumber()] >= 0 || llvm::is_contained(inPlace, int64_t(number)) ||
            (2 * elementsOf(result) < largest && !isFinished(region, number) && convolvedFrom(operand) == operand) ||
            operand.getType() != result.getType() || llvm::count_if(region.getOperands(), isSame) > 1 ||
            !diesIn(region, operand) || !isReadBy(result, [](Operation *) { return true; }) ||
            !kernels::canWriteOver(region, result.getResultNumber(), unsigned(number)))
          continue;
        inPlace[result.getResultNumber()] = int64_t(number);
        changed = true;
      }
    if (changed)
      region.setInPlace(inPlace);
  }
}

/// The axis over which a region's own code can accumulate its result: code that touches only changed elements, as the
/// rows of a table that ids select. For other code a separate pass over both tensors is as good.
StringAttr axisToAddOver(nn::FusedOp region) {
  if (region.getNumResults() != 1 || region.getInPlace())
    return {};
  Operation *last = region.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
  dist::AccumulateOp sum = accumulationOf(region.getResult(0));
  Type element = nn::tensorType(region.getResult(0)).getElementType();
  if (!last || !kernels::addsToRow(last->getName()) || !sum || sum.getAxes().size() != 1 ||
      !(element.isF32() || element.isF64()) || nn::tensorType(sum.getResult()).getElementType() != element)
    return {};
  return cast<StringAttr>(sum.getAxes()[0]);
}

struct WriteInPlacePass : impl::WriteInPlaceBase<WriteInPlacePass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Operation *returned = function.getBody().front().getTerminator();
      const Holders holders = findHolders(function);
      for (unsigned index = 0; index < function.getNumResults(); ++index) {
        std::string name = nn::resultPort(function, index).writes;
        if (name.empty())
          continue;
        OpResult result = madeBy(returned->getOperand(index));
        if (!result)
          continue;
        auto region = cast<nn::FusedOp>(result.getOwner());
        unsigned number = result.getResultNumber();
        std::optional<unsigned> operand = operandToWriteOver(region, number, valuesOf(holders, name, region));
        if (!operand)
          continue;
        SmallVector<int64_t> inPlace(region.getNumResults(), -1);
        if (region.getInPlace())
          inPlace.assign(region.getInPlace()->begin(), region.getInPlace()->end());
        inPlace[number] = *operand;
        region.setInPlace(inPlace);
      }
    }
    SmallVector<Block *> blocks;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<nn::FusedOp>(op))
        return WalkResult::skip();
      if (isa<func::FuncOp, pipe::StageOp>(op) && !op->getRegion(0).empty())
        blocks.push_back(&op->getRegion(0).front());
      return WalkResult::advance();
    });
    for (Block *block : blocks)
      writeOverTemporaries(*block);
    getOperation().walk([](nn::FusedOp region) {
      if (StringAttr axis = axisToAddOver(region)) {
        region.setAddsOverAttr(axis);
        region.setSymbol((region.getSymbol() + "_adding").str());
      }
    });
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
