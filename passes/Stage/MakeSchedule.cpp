// Writes the schedule of a staged function into its attribute pipe.schedule: by name, or from a user's file. The same
// checker accepts or refuses both.
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

/// The default schedule for the programs that there are.
static ScheduleKind defaultKind(const plan::Pipeline &pipeline) {
  const bool hasBackward = has(pipeline, plan::ProgramKind::Backward);
  if (hasBackward && pipeline.chunks > 1)
    return ScheduleKind::Interleaved;
  if (has(pipeline, plan::ProgramKind::WeightGradient))
    return ScheduleKind::ZeroBubbleH1;
  return hasBackward ? ScheduleKind::OneForwardOneBackward : ScheduleKind::Inference;
}

/// Whether it is a training step: else each stage has F alone.
static bool trains(const plan::Pipeline &pipeline) {
  return llvm::any_of(pipeline.programs, [](const plan::ProgramPlace &place) { return place.kind != plan::ProgramKind::Forward; });
}

static bool isThere(const plan::Pipeline &pipeline, plan::ProgramKind kind, size_t stage, int32_t chunk) {
  return llvm::is_contained(pipeline.programs, plan::ProgramPlace{kind, int32_t(stage), chunk});
}

/// Removes B, W and U where a stage has none for a part of the model: a stage without parameters has no U, a stage
/// before all trained parameters no B, and one that trains only biases may lack B or W. Returns the removed programs,
/// as "W of stage 0".
static SmallVector<std::string> takeAbsent(const plan::Pipeline &pipeline, PipelineSchedule &schedule) {
  SmallVector<std::string> taken;
  for (auto [index, stage] : llvm::enumerate(schedule))
    llvm::erase_if(stage, [&, index = index](const plan::ScheduleAction &action) {
      if (action.kind == plan::ProgramKind::Forward || isThere(pipeline, action.kind, index, action.chunk) ||
          !isThere(pipeline, plan::ProgramKind::Forward, index, action.chunk))
        return false;
      std::string text = plan::kindText(action.kind) + " of stage " + std::to_string(index);
      if (!llvm::is_contained(taken, text))
        taken.push_back(text);
      return true;
    });
  return taken;
}

static Status onlyTrains(StringRef what) {
  return Status::error(ErrorKind::Usage, (what + " of a training step, and this program runs forward alone; add --train, or leave the schedule out").str());
}

static Expected<PipelineSchedule> makeNamed(const plan::Pipeline &pipeline, ScheduleKind kind) {
  if (kind == ScheduleKind::Inference && defaultKind(pipeline) != kind)
    return Status::error(ErrorKind::Usage, "it runs no backward, which the program has; use " +
                                               plan::name(defaultKind(pipeline)));
  if (kind != ScheduleKind::Inference && !trains(pipeline))
    return onlyTrains("it is the schedule");
  Expected<PipelineSchedule> schedule =
      plan::makeSchedule(kind, pipeline.stages, pipeline.chunks, pipeline.microBatches);
  if (!schedule.ok())
    return schedule;
  takeAbsent(pipeline, *schedule);
  for (auto [index, stage] : llvm::enumerate(*schedule)) // a forward schedule names no update
    if (isThere(pipeline, plan::ProgramKind::Update, index, 0) && (stage.empty() || stage.back().kind != plan::ProgramKind::Update))
      stage.push_back({plan::ProgramKind::Update, 0, 0});
  return schedule;
}

/// A user's file may leave out all receives and drains, which are then added here. Such a file may name programs that a
/// stage does not have: they are removed and listed in `left`.
static Expected<PipelineSchedule> readFile(const plan::Pipeline &pipeline, const std::string &path, SmallVector<std::string> &left) {
  Expected<PipelineSchedule> schedule = readScheduleFile(path);
  if (!schedule.ok())
    return schedule;
  auto any = [&](llvm::function_ref<bool(plan::ProgramKind)> is) {
    return llvm::any_of(*schedule, [&](const plan::StageSchedule &stage) {
      return llvm::any_of(stage, [&](const plan::ScheduleAction &action) { return is(action.kind); });
    });
  };
  if (!trains(pipeline) && any([](plan::ProgramKind kind) { return plan::computes(kind) && kind != plan::ProgramKind::Forward; }))
    return onlyTrains("it has B, W or U,");
  bool isComplete = any([](plan::ProgramKind kind) { return !plan::computes(kind); });
  if (!isComplete && int64_t(schedule->size()) == pipeline.stages) {
    left = takeAbsent(pipeline, *schedule);
    plan::addTransfers(pipeline, *schedule);
  }
  return schedule;
}

static Expected<PipelineSchedule> makeSchedule(const plan::Pipeline &pipeline, const std::string &text, SmallVector<std::string> &left) {
  if (isScheduleFile(text))
    return readFile(pipeline, text, left);
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
    SmallVector<std::string> left;
    Expected<PipelineSchedule> made = makeSchedule(pipeline, schedule, left);
    Status status = made.ok() ? plan::checkSchedule(pipeline, *made).status() : made.status();
    if (!status.ok()) {
      bool isWrongList = isScheduleFile(schedule) && status.kind() == ErrorKind::Plan;
      userError(function, status.kind() == ErrorKind::Plan ? ErrorKind::Usage : status.kind())
          << (schedule.empty() ? "" : "--pp-schedule=" + schedule.getValue() + ": ") << status.message()
          << (isWrongList ? remedyOfFile : "");
      return signalPassFailure();
    }
    if (!left.empty())
      mlir::emitRemark(function.getLoc()) << "--pp-schedule=" << schedule << ": " << llvm::join(left, ", ")
                                          << (left.size() == 1 ? " is" : " are") << " left out: nothing is trained there that needs it";
    pipe::writeSchedule(function, *made);
  }
};
} // namespace

} // namespace hpc
