// Promises of the phase: products read the type of --dtype, and add in f32 or wider.
#include "compiler/Diagnostics.h"
#include "compiler/Location.h"
#include "passes/Precision/Passes.h"
#include "passes/Precision/ProductType.h"

namespace hpc {

#define GEN_PASS_DEF_VERIFYPRECISION
#include "passes/Precision/Passes.h.inc"

namespace {
struct VerifyPrecision : impl::VerifyPrecisionBase<VerifyPrecision> {
  using VerifyPrecisionBase::VerifyPrecisionBase;

  void runOnOperation() override {
    Expected<Type> type = productType(dtype, &getContext());
    if (!type.ok()) {
      userError(getOperation(), type.status().kind()) << type.status().message();
      return signalPassFailure();
    }
    if (!*type)
      return;
    bool follows = true;
    getOperation().walk([&](Operation *op) {
      SmallVector<unsigned> wide = wideFactors(op);
      if (wide.empty())
        return;
      op->emitError() << "operand " << wide.front() << " of the product at node '" << nodeName(op->getLoc()) << "' is "
                      << op->getOperand(wide.front()).getType() << ", not " << *type << "; run hpc-narrow-products";
      follows = false;
    });
    if (!follows)
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
