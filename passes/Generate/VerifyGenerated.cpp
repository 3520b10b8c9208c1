// Promises of the phase: the ports of @main are those of a step of generation, and the program is serial.
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/Ports.h"
#include "passes/Generate/Passes.h"
#include "runtime/plan/GenerationPorts.h"

namespace hpc {

#define GEN_PASS_DEF_VERIFYGENERATED
#include "passes/Generate/Passes.h.inc"

/// Ids and the position come in, one row of logits and every state go out.
static LogicalResult verifyStep(func::FuncOp function) {
  unsigned ids = 0, positions = 0, states = 0;
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    nn::ArgumentPort port = nn::argumentPort(function, index);
    ids += !port.name.empty();
    positions += port.stepScalar == plan::positionName;
    states += port.isState();
  }
  if (ids != 1 || positions != 1)
    return function.emitError() << "takes " << ids << " inputs and " << positions << " scalars '" << plan::positionName << "', not one of each";
  const size_t written = nn::writtenBy(function).size();
  if (function.getNumResults() != written + 1 || written != states)
    return function.emitError() << "writes " << written << " of " << states << " states, and has " << function.getNumResults() << " results in all";
  if (ArrayRef<int64_t> logits = nn::shapeOf(function.front().getTerminator()->getOperand(0)); logits.size() != 3 || logits[1] != 1)
    return function.emitError() << "result 0 is " << function.getResultTypes()[0] << ", not the logits of one row";
  return success();
}

/// The virtual mesh, on which a step was derived, is gone with all that speaks of it.
static LogicalResult verifySerial(ModuleOp module, func::FuncOp function) {
  if (module->hasAttr(dist::meshAttrName))
    return module.emitError() << "has " << dist::meshAttrName << " after generate";
  for (Operation &op : function.front()) {
    if (isa<dist::DistDialect>(op.getDialect()))
      return op.emitError() << "is of dist, which no serial program has";
    for (Value result : op.getResults())
      if (dist::shardingAttrOf(result))
        return op.emitError() << "has a result with a sharding after generate";
  }
  return success();
}

namespace {
struct VerifyGenerated : impl::VerifyGeneratedBase<VerifyGenerated> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (function && (failed(nn::verifyPorts(function)) || failed(verifyStep(function)) || failed(verifySerial(getOperation(), function))))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
