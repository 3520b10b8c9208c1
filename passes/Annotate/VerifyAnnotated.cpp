// Guarantees of the phase: one mesh, seeds that fit, and no sharding on a type.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "passes/Annotate/Passes.h"

namespace hpc {

#define GEN_PASS_DEF_VERIFYANNOTATED
#include "passes/Annotate/Passes.h.inc"

namespace {
struct VerifyAnnotated : impl::VerifyAnnotatedBase<VerifyAnnotated> {
  /// Whether the seed, if there is one, fits the value.
  LogicalResult check(Value value, const dist::Mesh &mesh) {
    Location place = value.getLoc();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !findDType(type))
      return userError(place, ErrorKind::Model)
             << "a value of type " << value.getType() << " is no tensor of a known element type";
    if (dist::shardingAttrOf(value))
      return mlir::emitError(place) << "type " << value.getType() << " carries a sharding before propagation";
    for (std::optional<dist::Seed> seed : {dist::seedOf(value), dist::readSeedOf(value)})
      if (Status status = seed ? dist::verify(seed->sharding, type.getShape().vec(), mesh) : Status(); !status.ok())
        return mlir::emitError(place) << "seed '" << dist::shardingText(*seed) << "' of " << value.getType() << ": " << status.message();
    return success();
  }

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    if (!getOperation()->hasAttr(dist::meshAttrName)) {
      getOperation().emitError() << "module has no " << dist::meshAttrName << "; run hpc-build-mesh";
      return signalPassFailure();
    }
    dist::Mesh mesh = dist::meshOf(getOperation());
    for (BlockArgument argument : function.getArguments())
      if (failed(check(argument, mesh)))
        return signalPassFailure();
    WalkResult walk = function.walk([&](Operation *op) {
      for (Value result : op->getResults())
        if (failed(check(result, mesh)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (walk.wasInterrupted() || failed(nn::verifyPorts(function)))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
