// The end of propagation: writes its decisions into types and attributes, and refuses programs that no plan can run.
// Ids are given in program order, so that two runs give the same ones.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/BatchDims.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"
#include "compiler/Location.h"
#include "passes/Propagate/Propagation.h"
#include "runtime/base/CountText.h"

namespace hpc {

using namespace dist;

/// `isTotal`: values that depend on a sum over all micro-batches.
LogicalResult Propagation::checkOp(const OpState &state, DenseSet<Value> &isTotal) const {
  for (auto [factor, cut] : llvm::zip(state.sharding.rule.factors, state.sharding.factors))
    if ((factor.isInternal || factor.combinesAtOnce()) &&
        !axesWithRole(axesOf(cut), mesh, AxisRole::Time).empty())
      return userError(state.op, ErrorKind::Unsupported)
             << describeOp(state.op) << " combines elements of different micro-batches (the batch dim " << toString(cut)
             << " is reduced), as batch statistics do: it needs the whole batch at once; use --micro-batches=1"
             << nn::guessedBatchText(state.op->getParentOfType<func::FuncOp>());
  bool isPerBatch = false, readsTotal = false;
  for (auto [index, operand] : llvm::enumerate(state.op->getOperands())) {
    Sharding taken = state.sharding.operand(index, mesh);
    isPerBatch |= isPerMicroBatch(taken, mesh);
    AxisNames completed = without(shardingOf(operand).partial, taken.partial);
    readsTotal |= isTotal.contains(operand) || !axesWithRole(completed, mesh, AxisRole::Time).empty();
  }
  if (isPerBatch && readsTotal)
    return userError(state.op, ErrorKind::Unsupported)
           << describeOp(state.op)
           << " reads in every micro-batch what is a sum over all of them, known only at the end of the step, as "
              "batch statistics and ratios of sums (a Dice loss) do: it needs the whole batch at once; use --micro-batches=1"
           << nn::guessedBatchText(state.op->getParentOfType<func::FuncOp>());
  if (readsTotal)
    for (Value result : state.op->getResults())
      isTotal.insert(result);
  return success();
}

LogicalResult Propagation::check() {
  DenseSet<Value> isTotal;
  for (OpState &state : ops)
    if (failed(checkOp(state, isTotal)))
      return failure();
  return success();
}

void Propagation::remarkOnConflicts(OpState &state) {
  for (auto [index, operand] : llvm::enumerate(state.op->getOperands())) {
    // A difference between storage and use is no conflict.
    Sharding has = usedSharding(operand), wanted = state.sharding.operand(index, mesh);
    if (normalize(has, mesh) == normalize(wanted, mesh) || isa_and_present<nn::ConstantOp>(operand.getDefiningOp()))
      continue;
    Expected<std::vector<ReshardStep>> steps = planReshard(has, wanted, mesh);
    if (!steps.ok())
      continue; // hpc-insert-reshards reports the error
    bool conflict = llvm::any_of(*steps, [](const ReshardStep &step) {
      return step.kind == ReshardStep::AllGather || step.kind == ReshardStep::AllToAll ||
             step.kind == ReshardStep::Permute;
    });
    for (OpOperand &use : operand.getUses()) // one remark for each value and wanted sharding
      if (OpState *user = stateOf(use.getOwner());
          user && user < &state && user->sharding.operand(use.getOperandNumber(), mesh) == wanted)
        conflict = false;
    if (conflict)
      remark(state.op, "operand " + std::to_string(index) + " is " + toString(has) + ", the op needs " +
                           toString(wanted) + ": " +
                           std::to_string(bytesMoved(*steps, mesh, elementBytes(nn::tensorType(operand).getElementType()))) +
                           " bytes are moved to every rank");
  }
}

void Propagation::emitRemarks() {
  for (const auto &[text, places] : remarks) {
    // At the location, not at the op, which MLIR would print whole after numbering all values.
    InFlightDiagnostic remark = mlir::emitRemark(places.front()) << "[hpc-propagate-shardings] " << text;
    if (places.size() > 1)
      remark << "; the same at " << countText(int64_t(places.size()) - 1, "more op");
  }
}

/// Origins of the axes that may cost a collective: axes of reductions, and axes that a user does not want.
void Propagation::writeOrigins(OpState &state) {
  AxisNames axes;
  for (auto [factor, cut] : llvm::zip(state.sharding.rule.factors, state.sharding.factors))
    if (factor.reduction || factor.isInternal)
      axes = unite(axes, axesOf(cut));
  for (OpResult result : state.op->getResults())
    for (OpOperand &use : result.getUses())
      if (OpState *user = stateOf(use.getOwner())) {
        Sharding has = state.sharding.result(result.getResultNumber(), mesh);
        if (user->sharding.operand(use.getOperandNumber(), mesh).dims != has.dims)
          axes = unite(axes, cutAxes(has));
      }
  CutOrigins origins;
  for (const std::string &axis : axes)
    if (auto origin = state.origins.find(axis); origin != state.origins.end())
      origins.insert(*origin);
  setOrigins(state.op, origins);
}

/// The same for a parameter, which has no state of its own: a reshard that gathers it names the reason.
void Propagation::writeOrigins(const SourceState &source) {
  auto parameter = source.value.getDefiningOp<nn::ParameterOp>();
  bool isWantedOtherwise = llvm::any_of(source.value.getUses(), [&](OpOperand &use) {
    OpState *user = stateOf(use.getOwner());
    return user && user->sharding.operand(use.getOperandNumber(), mesh).dims != source.sharding.dims;
  });
  if (!parameter || !isWantedOtherwise)
    return;
  CutOrigins origins;
  for (const std::string &axis : cutAxes(source.sharding))
    if (auto origin = source.origins.find(axis); origin != source.origins.end())
      origins.insert(*origin);
  setOrigins(parameter, origins);
}

static void setSharding(Value value, const Sharding &sharding) {
  value.setType(withSharding(nn::tensorType(value), sharding));
}

/// A returned value is complete, and a written one is as its target is stored.
void Propagation::reshardReturned() {
  Operation *terminator = function.front().getTerminator();
  OpBuilder builder(terminator);
  for (OpOperand &returned : terminator->getOpOperands()) {
    Sharding sharding = returnedSharding(returned.getOperandNumber());
    if (sharding == dist::shardingOf(returned.get()))
      continue;
    auto type = withSharding(nn::tensorType(returned.get()), sharding);
    returned.set(ReshardOp::create(builder, returned.get().getLoc(), type, returned.get(), StringAttr(), StringAttr()));
  }
}

void Propagation::write() {
  for (OpState &state : ops) {
    remarkOnConflicts(state);
    writeOrigins(state);
    setFactors(state.op, state.sharding.factors);
  }
  for (OpState &state : ops)
    for (OpResult result : state.op->getResults())
      setSharding(result, state.sharding.result(result.getResultNumber(), mesh));
  for (SourceState &source : sources) {
    setSharding(source.value, source.sharding);
    writeOrigins(source);
  }

  int64_t id = 0;
  for (Operation &op : function.front())
    if (op.getNumResults() == 1) // an id belongs to one value; an op that reads results of several has an id again
      setValueIds(&op, {id++, {}});
  reshardReturned(); // reads seeds
  removeSeeds(function);
  emitRemarks();
  function.setFunctionType(FunctionType::get(function.getContext(), function.front().getArgumentTypes(),
                                             function.front().getTerminator()->getOperandTypes()));
}

} // namespace hpc
