// A GELU that an exporter wrote as several ops becomes one op; dead code goes with it.
#include "passes/Raise/GeluMatch.h"
#include "passes/Raise/Passes.h"
#include "passes/Raise/Simplify.h"

namespace hpc {

#define GEN_PASS_DEF_RAISEGELU
#include "passes/Raise/Passes.h.inc"

namespace {
struct RaiseGelu : impl::RaiseGeluBase<RaiseGelu> {
  void runOnOperation() override {
    SmallVector<Operation *> activations;
    getOperation().walk([&](Operation *op) {
      if (isa<nn::TanhOp, nn::ErfOp>(op))
        activations.push_back(op);
    });
    for (Operation *activation : activations)
      if (std::optional<GeluMatch> match = matchGelu(activation)) {
        OpBuilder builder(match->root);
        Value gelu = nn::GeluOp::create(builder, match->root->getLoc(), match->root->getResult(0).getType(),
                                        match->input, match->isTanh);
        match->root->getResult(0).replaceAllUsesWith(gelu);
      }
    // Without patterns this removes dead code.
    if (failed(rewriteToTheEnd(getOperation(), RewritePatternSet(&getContext()))))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
