// Writes the schedule of a staged function into its attribute pipe.schedule: by name, or from a user's file. Whatever
// it comes from, the one checker decides.
#include "passes/Stage/Passes.h"

#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/Pipe/Schedule.h"
#include "runtime/base/File.h"
#include "runtime/plan/ScheduleCheck.h"
#include "runtime/plan/ScheduleKinds.h"

namespace hpc {

#define GEN_PASS_DEF_MAKESCHEDULE
#include "passes/Stage/Passes.h.inc"

using plan::PipelineSchedule;
using plan::ScheduleKind;

static bool has(const plan::Pipeline &pipeline, plan::ProgramKind kind) {
  return llvm::any_of(pipeline.programs, [&](const plan::ProgramPlace &place) { return place.kind == kind; });
}

/// What fits the programs that there are.
static ScheduleKind defaultKind(const plan::Pipeline &pipeline) {
  if (!has(pipeline, plan::ProgramKind::Backward))
    return ScheduleKind::Inference;
  if (pipeline.chunks > 1)
    return ScheduleKind::Interleaved;
  return has(pipeline, plan::ProgramKind::WeightGradient) ? ScheduleKind::ZeroBubbleH1
                                                          : ScheduleKind::OneForwardOneBackward;
}

/// Each stage's updates are its own: a stage without one has no U, and with a forward schedule one with one has.
static void fitUpdates(const plan::Pipeline &pipeline, PipelineSchedule &schedule) {
  for (auto [index, stage] : llvm::enumerate(schedule)) {
    plan::ProgramPlace update{plan::ProgramKind::Update, int32_t(index), 0};
    bool updates = llvm::is_contained(pipeline.programs, update);
    if (!stage.empty() && stage.back().kind == plan::ProgramKind::Update) {
      if (!updates)
        stage.pop_back();
    } else if (updates) {
      stage.push_back({plan::ProgramKind::Update, 0, 0});
    }
  }
}

static Expected<PipelineSchedule> makeNamed(const plan::Pipeline &pipeline, ScheduleKind kind) {
  Expected<PipelineSchedule> schedule =
      plan::makeSchedule(kind, pipeline.stages, pipeline.chunks, pipeline.microBatches);
  if (!schedule.ok())
    return schedule;
  fitUpdates(pipeline, *schedule);
  for (const plan::StageSchedule &stage : *schedule)
    for (const plan::ScheduleAction &action : stage)
      if (!has(pipeline, action.kind))
        return Status::error(ErrorKind::Usage, "it runs " + kindText(action.kind) +
                                                   ", which the program does not have; use " +
                                                   plan::name(defaultKind(pipeline)));
  return schedule;
}

/// A user's file may leave receives and drains to us; then it has none at all.
static Expected<PipelineSchedule> readFile(const plan::Pipeline &pipeline, const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  Expected<PipelineSchedule> schedule = plan::parseScheduleFile(std::string(file->text()));
  if (!schedule.ok())
    return schedule.status().at(path);
  bool isComplete = llvm::any_of(*schedule, [](const plan::StageSchedule &stage) {
    return llvm::any_of(stage, [](const plan::ScheduleAction &action) { return !plan::computes(action.kind); });
  });
  if (!isComplete && int64_t(schedule->size()) == pipeline.stages)
    plan::addTransfers(pipeline, *schedule);
  return schedule;
}

static Expected<PipelineSchedule> makeSchedule(const plan::Pipeline &pipeline, const std::string &text) {
  if (text.find_first_of("/.") != std::string::npos)
    return readFile(pipeline, text);
  ScheduleKind kind = defaultKind(pipeline);
  if (!text.empty()) {
    Expected<ScheduleKind> named = plan::parseScheduleKind(text);
    if (!named.ok())
      return Status::error(ErrorKind::Usage, named.status().message() + ", and files (./my-schedule.txt)");
    kind = *named;
  }
  Expected<PipelineSchedule> schedule = makeNamed(pipeline, kind);
  if (schedule.ok())
    plan::addTransfers(pipeline, *schedule);
  return schedule;
}

namespace {
struct MakeSchedule : impl::MakeScheduleBase<MakeSchedule> {
  using MakeScheduleBase::MakeScheduleBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function || function.isExternal())
      return;
    plan::Pipeline pipeline = pipe::pipelineOf(function, dist::meshOf(getOperation()).sizeOf(dist::AxisRole::Time));
    if (pipeline.programs.empty()) {
      userError(function, ErrorKind::Model)
          << "@main has no stages that a schedule could run; run hpc-split-stages first";
      return signalPassFailure();
    }
    Expected<PipelineSchedule> made = makeSchedule(pipeline, schedule);
    Status status = made.ok() ? plan::checkSchedule(pipeline, *made).status() : made.status();
    if (!status.ok()) {
      userError(function, status.kind() == ErrorKind::Plan ? ErrorKind::Usage : status.kind())
          << (schedule.empty() ? "" : "--pp-schedule=" + schedule.getValue() + ": ") << status.message();
      return signalPassFailure();
    }
    pipe::writeSchedule(function, *made);
  }
};
} // namespace

} // namespace hpc
