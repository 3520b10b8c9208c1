// What holds when the phase ends: @main is stages 0, 1, ... with transfers between neighbours, and nothing else.
#include "passes/Stage/Passes.h"

namespace hpc {

#define GEN_PASS_DEF_VERIFYSTAGED
#include "passes/Stage/Passes.h.inc"

namespace {
struct VerifyStaged : impl::VerifyStagedBase<VerifyStaged> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    int64_t next = 0;
    for (Operation &op : function.getBody().front()) {
      if (auto stage = dyn_cast<pipe::StageOp>(op)) {
        if (int64_t(stage.getIndex()) != next++) {
          stage.emitError() << "stage " << stage.getIndex() << " stands at position " << next - 1
                            << "; stages run in order";
          return signalPassFailure();
        }
      } else if (auto transfer = dyn_cast<pipe::TransferOp>(op)) {
        // A transfer forwards a result of the stage it leaves from, to the next one.
        auto source = transfer.getOperand().getDefiningOp<pipe::StageOp>();
        if (!source || source.getIndex() != transfer.getFrom() || transfer.getTo() != transfer.getFrom() + 1) {
          transfer.emitError() << "transfer from stage " << transfer.getFrom() << " to " << transfer.getTo()
                               << " must carry a result of stage " << transfer.getFrom() << " to its neighbour";
          return signalPassFailure();
        }
      } else if (!isa<func::ReturnOp>(op)) {
        op.emitError() << "'" << op.getName() << "' stands outside of every stage";
        return signalPassFailure();
      }
    }
  }
};
} // namespace

} // namespace hpc
