// Promises of the phase: the ports of @main fit, and the program is serial.
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/Ports.h"
#include "passes/Generate/Passes.h"

namespace hpc {

#define GEN_PASS_DEF_VERIFYGENERATED
#include "passes/Generate/Passes.h.inc"

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
    if (function && (failed(nn::verifyPorts(function)) || failed(verifySerial(getOperation(), function))))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
