// Guarantees of the phase, besides those of stage: backward receives values of the micro-batch alone.
#include "passes/Recompute/ForwardPart.h"
#include "passes/Recompute/Passes.h"

#include "compiler/BlockMark.h"
#include "compiler/Dialect/Pipe/Schedule.h"
#include "compiler/Location.h"

namespace hpc {

#define GEN_PASS_DEF_VERIFYRECOMPUTED
#include "passes/Recompute/Passes.h.inc"

namespace {
struct VerifyRecomputed : impl::VerifyRecomputedBase<VerifyRecomputed> {
  LogicalResult check(func::FuncOp function) {
    WalkResult marks = function.walk([](Operation *op) {
      if (!blockMark(op))
        return WalkResult::advance();
      op->emitError() << describeOp(op) << " still carries " << blockAttrName;
      return WalkResult::interrupt();
    });
    Expected<plan::PipelineSchedule> schedule = pipe::readSchedule(function);
    if (marks.wasInterrupted() || !schedule.ok())
      return failure();
    for (const ForwardPart &part : findForwardParts(function, *schedule))
      for (Value value : part.read)
        if (part.gathers.contains(value.getDefiningOp()))
          return value.getDefiningOp()->emitError()
                 << describeOp(value.getDefiningOp()) << " gathers a parameter that backward of stage " << part.stage()
                 << " reads; it must gather it again";
    return success();
  }

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (function && !function.isExternal() && failed(check(function)))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
