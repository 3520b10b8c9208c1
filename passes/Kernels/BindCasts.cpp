// Casts of weights are bound, not computed: a weight that is stored as f32 and read in 16 bits is rounded once, when it is
// loaded, and so are bytes read as floats of 16 bits, which hold them exactly. A weight that the program writes is rounded in every step instead; it is another number in each.
#include "passes/Kernels/Passes.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Dialect/NN/Ports.h"

namespace hpc {
#define GEN_PASS_DEF_BINDCASTS
#include "passes/Kernels/Passes.h.inc"

/// Whether the op rounds a stored f32 to 16 bits, reads stored bytes as 16-bit floats, or casts a widened weight back
/// to its stored type. Readers of the uncast weight keep it beside the bound one.
static bool isBindable(nn::ParameterOp parameter, nn::CastOp cast) {
  Type to = nn::tensorType(cast.getResult()).getElementType(), own = nn::tensorType(parameter.getResult()).getElementType();
  if ((!to.isF16() && !to.isBF16()) || nn::isWritten(parameter.getResult()))
    return false;
  bool isBytes = own.isInteger(8) && !parameter.getInt8Along() && !parameter.getStoredType();
  return isBytes || (own.isF32() && parameter.getStoredType().value_or(to) == to);
}

namespace {
struct BindCastsPass : impl::BindCastsBase<BindCastsPass> {
  void runOnOperation() override {
    getOperation().walk([](nn::CastOp cast) {
      auto parameter = cast.getOperand().getDefiningOp<nn::ParameterOp>();
      if (!parameter || !isBindable(parameter, cast))
        return;
      OpBuilder builder(cast);
      auto bound = mlir::cast<nn::ParameterOp>(builder.clone(*parameter));
      bound.getResult().setType(nn::tensorType(cast.getResult()));
      nn::Storage storage = parameter.stored();
      storage.type = storage.type ? Type() : nn::tensorType(parameter.getResult()).getElementType();
      bound.setStored(storage);
      setValueIds(bound, valueIdsOf(cast)); // it is the cast's value that --verify should find
      cast.replaceAllUsesWith(bound.getResult());
      cast.erase();
      if (parameter.use_empty())
        parameter.erase();
    });
  }
};
} // namespace
} // namespace hpc
