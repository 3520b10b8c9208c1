// Pass hpc-fill-tails: identities into the padding that a reduction over a cut uneven factor would read.
// All operands with the factor are filled: NaN in one times zero in the other is NaN.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Location.h"
#include "passes/Partition/Passes.h"
#include "passes/Partition/ReducedPadding.h"

namespace hpc {
#define GEN_PASS_DEF_FILLTAILS
#include "passes/Partition/Passes.h.inc"

using namespace dist;

namespace {
struct FillTails : impl::FillTailsBase<FillTails> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    Mesh mesh = meshOf(function);
    std::map<std::tuple<void *, std::vector<int64_t>, const void *>, Value> made; // users share a filled value
    for (Operation &op : llvm::make_early_inc_range(function.front())) {
      auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
      if (!ruled)
        continue;
      std::string why;
      std::optional<OpSharding> sharding = readOpSharding(ruled, mesh, why);
      if (!sharding) {
        userError(&op, ErrorKind::Internal)
            << describeOp(&op) << ": " << why << "; hpc-insert-reshards makes operands fit";
        return signalPassFailure();
      }
      for (OpOperand &use : op.getOpOperands()) {
        std::optional<TailFill> fill =
            tailFillOf(*sharding, use.getOperandNumber(), nn::tensorType(use.get()).getElementType(), mesh);
        if (!fill || hasPadding(use.get(), fill->value))
          continue;
        Value &filled = made[{use.get().getAsOpaquePointer(), fill->dims, fill->value.getAsOpaquePointer()}];
        if (!filled) {
          OpBuilder builder(&op);
          filled = FillTailOp::create(builder, op.getLoc(), use.get().getType(), use.get(), fill->dims,
                                      fill->value);
          setValueIds(filled.getDefiningOp(), {{}, valueIdsOf(use.get().getDefiningOp()).held()});
        }
        use.set(filled);
      }
    }
  }
};
} // namespace
} // namespace hpc
