// Writes the schedule of a staged function into its attribute pipe.schedule: by name, or from a user's file. Whatever
// it comes from, the one checker decides.
#include "passes/Stage/Passes.h"

#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/Pipe/Schedule.h"
#include "passes/Stage/ScheduleChoice.h"
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

/// What a stage runs is its own: one without parameters has no U, one before all parameters no B, and with a forward
/// schedule one that updates has a U.
static void fitPrograms(const plan::Pipeline &pipeline, PipelineSchedule &schedule) {
  for (auto [index, stage] : llvm::enumerate(schedule)) {
    auto isThere = [&, stage = int32_t(index)](plan::ProgramKind kind, int32_t chunk) {
      return llvm::is_contained(pipeline.programs, plan::ProgramPlace{kind, stage, chunk});
    };
    llvm::erase_if(stage, [&](const plan::ScheduleAction &action) {
      return has(pipeline, action.kind) && !isThere(action.kind, action.chunk);
    });
    bool updates = !stage.empty() && stage.back().kind == plan::ProgramKind::Update;
    if (updates && !isThere(plan::ProgramKind::Update, 0))
      stage.pop_back();
    else if (!updates && isThere(plan::ProgramKind::Update, 0))
      stage.push_back({plan::ProgramKind::Update, 0, 0});
  }
}

static Expected<PipelineSchedule> makeNamed(const plan::Pipeline &pipeline, ScheduleKind kind) {
  if (kind == ScheduleKind::Inference && has(pipeline, plan::ProgramKind::Backward))
    return Status::error(ErrorKind::Usage, "it runs no B, which the program has; use " +
                                               plan::name(defaultKind(pipeline)));
  Expected<PipelineSchedule> schedule =
      plan::makeSchedule(kind, pipeline.stages, pipeline.chunks, pipeline.microBatches);
  if (!schedule.ok())
    return schedule;
  fitPrograms(pipeline, *schedule);
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
  Expected<PipelineSchedule> schedule = readScheduleFile(path);
  if (!schedule.ok())
    return schedule;
  bool isComplete = llvm::any_of(*schedule, [](const plan::StageSchedule &stage) {
    return llvm::any_of(stage, [](const plan::ScheduleAction &action) { return !plan::computes(action.kind); });
  });
  if (!isComplete && int64_t(schedule->size()) == pipeline.stages)
    plan::addTransfers(pipeline, *schedule);
  return schedule;
}

static Expected<PipelineSchedule> makeSchedule(const plan::Pipeline &pipeline, const std::string &text) {
  if (isScheduleFile(text))
    return readFile(pipeline, text);
  ScheduleKind kind = defaultKind(pipeline);
  if (!text.empty()) {
    Expected<ScheduleKind> named = parseScheduleName(text);
    if (!named.ok())
      return named.status();
    kind = *named;
  }
  Expected<PipelineSchedule> schedule = makeNamed(pipeline, kind);
  if (schedule.ok())
    plan::addTransfers(pipeline, *schedule);
  return schedule;
}

constexpr StringRef remedyOfFile = "; the file has a line for each stage, which names what the stage runs, in order: each program once for each micro-batch "
                                   "(F0 B0 F1 B1), U once, and receives and drains all or not at all; hpc-opt --explain shows the lists of a schedule that runs";

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
      bool isWrongList = isScheduleFile(schedule) && status.kind() == ErrorKind::Plan;
      userError(function, status.kind() == ErrorKind::Plan ? ErrorKind::Usage : status.kind())
          << (schedule.empty() ? "" : "--pp-schedule=" + schedule.getValue() + ": ") << status.message()
          << (isWrongList ? remedyOfFile : "");
      return signalPassFailure();
    }
    pipe::writeSchedule(function, *made);
  }
};
} // namespace

} // namespace hpc
