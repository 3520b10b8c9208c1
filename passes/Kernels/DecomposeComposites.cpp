// Composites without a provider become their definitions; each new op keeps the composite's name (KernelName.h) until
// its region is named.
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/Providers.h"
#include "passes/Kernels/KernelName.h"
#include "passes/Kernels/Passes.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

namespace hpc {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITES
#include "passes/Kernels/Passes.h.inc"

namespace {
/// Marks every op that a builder makes.
struct Naming : OpBuilder::Listener {
  explicit Naming(StringAttr name) : name(name) {}
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override { kernels::setKernelName(op, name); }
  StringAttr name;
};

/// Whether the op writes a state of @main, in whose buffer its result then is.
bool updatesState(nn::UpdateSliceOp op) {
  auto argument = dyn_cast<BlockArgument>(op.getState());
  if (auto stage = argument ? dyn_cast<pipe::StageOp>(argument.getOwner()->getParentOp()) : pipe::StageOp())
    argument = dyn_cast<BlockArgument>(stage->getOperand(argument.getArgNumber()));
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return function && nn::argumentPort(function, argument.getArgNumber()).isState();
}

/// Whether somebody computes the op whole.
bool isClaimed(Operation *op) {
  if (auto update = dyn_cast<nn::UpdateSliceOp>(op); update && !updatesState(update))
    return false;
  return providerOf(op) != Provider::None && (!kernels::isAttention(op) || kernels::fitsAttentionKernel(op));
}

/// Innermost last: attention's definition contains a softmax, which is decomposed in turn.
void decompose(CompositeOpInterface composite) {
  Operation *op = composite;
  Naming naming(StringAttr::get(op->getContext(), op->getName().stripDialect()));
  OpBuilder builder(op->getContext(), &naming);
  builder.setInsertionPoint(op);
  Operation *before = op->getPrevNode();
  Block *block = op->getBlock();
  SmallVector<Value> results = composite.decompose(builder);
  for (auto [old, value] : llvm::zip_equal(op->getResults(), results)) {
    // The definition has shapes alone; the sharding is the composite's.
    if (value.getType() != old.getType() && value.getDefiningOp() && !llvm::is_contained(op->getOperands(), value))
      value.setType(old.getType());
    // The same value as before, for --verify. An operand that is handed through keeps its own id.
    if (Operation *maker = value.getDefiningOp(); maker && !valueIdsOf(maker).made)
      setValueIds(maker, {valueIdsOf(op).made, valueIdsOf(maker).moved});
    old.replaceAllUsesWith(value);
  }
  SmallVector<CompositeOpInterface> inner;
  for (Operation *made = before ? before->getNextNode() : &block->front(); made != op; made = made->getNextNode())
    if (auto composite = dyn_cast<CompositeOpInterface>(made); composite && !isClaimed(made))
      inner.push_back(composite);
  op->erase();
  for (CompositeOpInterface composite : inner)
    decompose(composite);
}

struct DecomposeCompositesPass : impl::DecomposeCompositesBase<DecomposeCompositesPass> {
  void runOnOperation() override {
    SmallVector<CompositeOpInterface> composites;
    getOperation().walk([&](CompositeOpInterface op) {
      if (!isClaimed(op))
        composites.push_back(op);
    });
    for (CompositeOpInterface op : composites)
      decompose(op);
  }
};
} // namespace
} // namespace hpc
