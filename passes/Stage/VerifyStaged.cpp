// Guarantees of the phase: @main consists of programs of stages 0, 1, ... and transfers between them, and its schedule
// passes the checker.
#include "passes/Stage/Passes.h"

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/Pipe/Schedule.h"
#include "runtime/plan/ScheduleCheck.h"

namespace hpc {

#define GEN_PASS_DEF_VERIFYSTAGED
#include "passes/Stage/Passes.h.inc"

static std::string nameOf(pipe::StageOp program) {
  std::string chunk = program.getChunk() ? ", chunk " + std::to_string(program.getChunk()) : "";
  return "program " + pipe::stringifyProgramKind(program.getProgram()).str() + " of stage " +
         std::to_string(program.getIndex()) + chunk;
}

/// Each program is there once but for the rounds of updates, and stages and chunks are numbered without holes.
static LogicalResult checkPrograms(func::FuncOp function) {
  std::map<std::tuple<int64_t, int64_t, int>, pipe::StageOp> programs;
  std::set<int64_t> stages, chunks;
  for (auto program : function.getBody().front().getOps<pipe::StageOp>()) {
    int64_t stage = int64_t(program.getIndex()), chunk = int64_t(program.getChunk());
    auto [first, isNew] = programs.try_emplace({stage, chunk, int(program.getProgram())}, program);
    if (!isNew && program.getProgram() != pipe::ProgramKind::update) {
      InFlightDiagnostic error = program.emitError() << nameOf(program) << " is there twice";
      error.attachNote(first->second.getLoc()) << "here too";
      return error;
    }
    stages.insert(stage);
    chunks.insert(chunk);
  }
  for (auto [kind, numbers] : {std::pair("stage", &stages), std::pair("chunk", &chunks)})
    if (!numbers->empty() && (*numbers->begin() != 0 || *numbers->rbegin() + 1 != int64_t(numbers->size())))
      return function.emitError() << "the " << kind << "s of @main are not 0, 1, ...: there are " << numbers->size()
                                  << " up to " << *numbers->rbegin();
  return success();
}

static LogicalResult checkOps(func::FuncOp function) {
  for (Operation &op : function.getBody().front()) {
    if (isa<pipe::StageOp, func::ReturnOp>(op))
      continue;
    auto transfer = dyn_cast<pipe::TransferOp>(op);
    if (!transfer)
      return op.emitError() << "'" << op.getName() << "' stands outside of every stage";
    auto source = transfer.getOperand().getDefiningOp<pipe::StageOp>();
    if (!source || source.getIndex() != transfer.getFrom())
      return transfer.emitError() << "transfer from stage " << transfer.getFrom() << " to " << transfer.getTo()
                                  << " must carry a result of stage " << transfer.getFrom()
                                  << (source ? ", not of stage " + std::to_string(source.getIndex()) : std::string());
  }
  return success();
}

static LogicalResult checkSchedule(ModuleOp module, func::FuncOp function) {
  Expected<plan::PipelineSchedule> schedule = pipe::readSchedule(function);
  plan::Pipeline pipeline = pipe::pipelineOf(function, dist::meshOf(module).sizeOf(dist::AxisRole::Time));
  Status status = schedule.ok() ? plan::checkSchedule(pipeline, *schedule).status() : schedule.status();
  return status.ok() ? success() : LogicalResult(function.emitError() << status.message());
}

namespace {
struct VerifyStaged : impl::VerifyStagedBase<VerifyStaged> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    // Each check relies on the ones before it.
    if (failed(checkOps(function)) || failed(checkPrograms(function)) ||
        failed(checkSchedule(getOperation(), function)))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
