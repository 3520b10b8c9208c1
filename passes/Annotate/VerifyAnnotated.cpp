// What holds when the phase ends: one mesh, seeds that fit, and no sharding on a type.
#include "compiler/Dialect/NN/NN.h"
#include "passes/Annotate/Passes.h"

namespace hpc {

#define GEN_PASS_DEF_VERIFYANNOTATED
#include "passes/Annotate/Passes.h.inc"

namespace {
struct VerifyAnnotated : impl::VerifyAnnotatedBase<VerifyAnnotated> {
  /// Whether the seed is a sharding of the value.
  LogicalResult check(Location place, Value value, dist::ShardingAttr seed, const dist::Mesh &mesh) {
    if (dist::shardingAttrOf(value))
      return mlir::emitError(place) << "type " << value.getType() << " carries a sharding before propagation";
    if (!seed)
      return success();
    Status status = dist::verify(seed.getValue(), nn::shapeOf(value).vec(), mesh);
    if (!status.ok())
      return mlir::emitError(place) << "seed " << seed << " of " << value.getType() << ": " << status.message();
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
      if (failed(check(argument.getLoc(), argument,
                       function.getArgAttrOfType<dist::ShardingAttr>(argument.getArgNumber(), "dist.seed"), mesh)))
        return signalPassFailure();
    WalkResult walk = function.walk([&](Operation *op) {
      for (Value result : op->getResults())
        if (isa<RankedTensorType>(result.getType()) &&
            failed(check(op->getLoc(), result, op->getAttrOfType<dist::ShardingAttr>("dist.seed"), mesh)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
