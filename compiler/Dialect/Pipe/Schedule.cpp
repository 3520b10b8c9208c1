// Reader and writer of pipe.schedule; the pipeline that a staged function is.
#include "compiler/Dialect/Pipe/Schedule.h"

namespace hpc::pipe {

static_assert(int(ProgramKind::forward) == int(plan::ProgramKind::Forward) &&
                  int(ProgramKind::backward) == int(plan::ProgramKind::Backward) &&
                  int(ProgramKind::weight_gradient) == int(plan::ProgramKind::WeightGradient) &&
                  int(ProgramKind::update) == int(plan::ProgramKind::Update),
              "Pipe.td numbers the programs as the plan does");

static plan::ProgramPlace placeOf(StageOp program) {
  return {planKind(program.getProgram()), int32_t(program.getIndex()), int32_t(program.getChunk())};
}

plan::Pipeline pipelineOf(func::FuncOp function, int64_t microBatches) {
  plan::Pipeline pipeline{1, 1, microBatches, {}, {}};
  auto need = [&](plan::ProgramPlace before, plan::ProgramPlace after) {
    if (before == after) // rounds of one update
      return;
    for (const plan::Dependency &known : pipeline.dependencies)
      if (known.before == before && known.after == after)
        return;
    pipeline.dependencies.push_back({before, after});
  };
  for (auto program : function.getBody().front().getOps<StageOp>()) {
    plan::ProgramPlace place = placeOf(program);
    pipeline.stages = std::max<int64_t>(pipeline.stages, place.stage + 1);
    pipeline.chunks = std::max<int64_t>(pipeline.chunks, place.chunk + 1);
    if (!llvm::is_contained(pipeline.programs, place))
      pipeline.programs.push_back(place);
    for (Value operand : program.getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (auto transfer = dyn_cast_or_null<TransferOp>(producer))
        producer = transfer.getOperand().getDefiningOp();
      if (auto source = dyn_cast_or_null<StageOp>(producer))
        need(placeOf(source), place);
    }
  }
  for (const plan::ProgramPlace &update : pipeline.programs)
    for (const plan::ProgramPlace &other : pipeline.programs)
      if (plan::isPerStep(update.kind) && !plan::isPerStep(other.kind) && update.stage == other.stage)
        need(other, update);
  return pipeline;
}

void writeSchedule(func::FuncOp function, const plan::PipelineSchedule &schedule) {
  SmallVector<std::string> texts;
  for (const plan::StageSchedule &stage : schedule)
    texts.push_back(plan::formatSchedule(stage));
  SmallVector<StringRef> views(texts.begin(), texts.end());
  function->setAttr(scheduleAttrName, Builder(function.getContext()).getStrArrayAttr(views));
}

Expected<plan::PipelineSchedule> readSchedule(func::FuncOp function) {
  auto texts = function->getAttrOfType<ArrayAttr>(scheduleAttrName);
  if (!texts)
    return Status::error(ErrorKind::Model, "@main has stages but no attribute pipe.schedule, an array of one text a "
                                           "stage; run hpc-make-schedule");
  plan::PipelineSchedule schedule;
  for (auto [index, text] : llvm::enumerate(texts)) {
    auto string = dyn_cast<StringAttr>(text);
    if (!string)
      return Status::error(ErrorKind::Model, "pipe.schedule: entry " + std::to_string(index) + " is not a text");
    Expected<plan::StageSchedule> stage = plan::parseSchedule(string.str());
    if (!stage.ok())
      return stage.status().at("pipe.schedule, stage " + std::to_string(index));
    schedule.push_back(std::move(*stage));
  }
  return schedule;
}

} // namespace hpc::pipe
