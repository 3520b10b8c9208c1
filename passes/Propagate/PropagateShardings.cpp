// Pass hpc-propagate-shardings: from seeds on a few values to one sharding for every tensor.
// The seeds of one priority flow to the end before those of the next begin, so that a default never overrules the user.
#include "compiler/Diagnostics.h"
#include "passes/Propagate/Passes.h"
#include "passes/Propagate/Propagation.h"

namespace hpc {
#define GEN_PASS_DEF_PROPAGATESHARDINGS
#include "passes/Propagate/Passes.h.inc"

namespace {
struct PropagateShardings : impl::PropagateShardingsBase<PropagateShardings> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto function = module.lookupSymbol<func::FuncOp>("main");
    if (!function || !module->hasAttr(dist::meshAttrName)) {
      userError(module, ErrorKind::Internal)
          << "propagation needs @main and the module attribute '" << dist::meshAttrName << "'";
      return signalPassFailure();
    }
    Propagation propagation(function, dist::meshOf(module));
    propagation.closeWholeOutputs();
    for (int64_t priority : propagation.priorities()) {
      if (failed(propagation.seed(priority)))
        return signalPassFailure();
      propagation.flow();
    }
    propagation.flowRest(); // rows of a gradient's product, before its result could take a storage's cut over their axis
    propagation.seedWritten();
    propagation.flow();
    propagation.flowRest();
    propagation.flowPartials();
    propagation.weighConflicts();
    propagation.takePieces();
    propagation.flowPartials(); // ops whose cuts were given up may pass other partial sums
    propagation.settleParameters();
    if (failed(propagation.check()))
      return signalPassFailure();
    propagation.write();
  }
};
} // namespace
} // namespace hpc
