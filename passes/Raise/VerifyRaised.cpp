// Guarantees of the phase: each pattern that a matcher of this folder recognises has become one op, and equal weights
// are one parameter.
#include "compiler/Diagnostics.h"
#include "compiler/Location.h"
#include "passes/Raise/AttentionMatch.h"
#include "passes/Raise/CrossEntropyMatch.h"
#include "passes/Raise/GeluMatch.h"
#include "passes/Raise/NormMatch.h"
#include "passes/Raise/Passes.h"
#include "passes/Raise/Ties.h"

namespace hpc {

#define GEN_PASS_DEF_VERIFYRAISED
#include "passes/Raise/Passes.h.inc"

/// The pattern whose root the op is, and the pass that should have raised it; empty for most ops.
static std::pair<StringRef, StringRef> leftover(Operation *op) {
  if (std::optional<NormMatch> norm = matchNorm(op))
    return {norm->subtractsMean ? "layer norm" : "RMS norm", "hpc-raise-layer-norm"};
  if (matchGelu(op))
    return {"GELU", "hpc-raise-gelu"};
  if (auto gather = dyn_cast<nn::GatherNdOp>(op); gather && matchCrossEntropy(gather))
    return {"cross entropy", "hpc-raise-cross-entropy"};
  if (auto matmul = dyn_cast<nn::MatmulOp>(op); matmul && matchAttention(matmul))
    return {"attention", "hpc-raise-attention"};
  return {};
}

namespace {
struct VerifyRaised : impl::VerifyRaisedBase<VerifyRaised> {
  using VerifyRaisedBase::VerifyRaisedBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    bool isRaised = true;
    for (Operation &op : function.getBody().front())
      if (auto [what, pass] = leftover(&op); !what.empty()) {
        op.emitError() << "spelled-out " << what << " is left at node '" << nodeName(op.getLoc()) << "'; run " << pass;
        isRaised = false;
      }
    Expected<std::vector<Tie>> ties = findTies(function, folder);
    if (!ties.ok()) {
      userError(function, ties.status().kind()) << ties.status().message();
      return signalPassFailure();
    }
    for (Tie &tie : *ties) {
      InFlightDiagnostic error = tie.duplicate.emitError();
      error << "parameter '" << tie.duplicate.getName() << "' is parameter '" << tie.weight.getName() << "'"
            << (tie.isTransposed ? " transposed" : "") << "; run hpc-tie-weights";
      error.attachNote(tie.weight.getLoc()) << "the other one";
      isRaised = false;
    }
    if (!isRaised)
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
