// Notes go to standard error, and the line of a terminal makes room for them.
#include "tools/running/TrainReport.h"

#include "runtime/backend/host/MachineSpeed.h"
#include "runtime/plan/PlanFacts.h"
#include "runtime/train/observers/LogLines.h"
#include "runtime/train/observers/MetricsFile.h"
#include "runtime/train/observers/ProgressLine.h"
#include "runtime/train/observers/RunSummary.h"
#include "runtime/train/observers/StepLines.h"
#include "runtime/train/observers/StepNotes.h"
#include "runtime/train/observers/TensorBoard.h"
#include "tools/ExitCode.h"

#include <cstdlib>
#include <map>
#include <sys/ioctl.h>
#include <unistd.h>

namespace hpc {

ReportFlags readReportFlags(const Arguments &arguments) {
  ReportFlags flags;
  flags.every = *arguments.whole("log-every");
  flags.format = arguments.text("log-format");
  flags.quiet = arguments.has("quiet");
  flags.spike = *arguments.real("spike");
  flags.tensorBoard = arguments.text("tensorboard");
  if (std::optional<double> peak = arguments.real("peak-tflops"))
    flags.peak = *peak * 1e12;
  return flags;
}

Status checkReportFlags(const Arguments &arguments, const ReportFlags &flags) {
  if (flags.quiet && arguments.has("log-format"))
    return Status::error(ErrorKind::Usage, "--quiet prints no lines, and --log-format=" + flags.format + " says how they look; leave one of them out");
  return Status::success();
}

static void printText(const std::string &text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

static RunFacts factsOf(const ReportFlags &flags, int64_t steps, const plan::Plan &plan) {
  RunFacts facts;
  facts.steps = steps;
  facts.every = flags.every;
  facts.ranks = plan.worldSize();
  const plan::StepItems items = plan::itemsOf(plan);
  facts.item = items.name;
  facts.items = items.count;
  for (int64_t flops : plan::staticFacts(plan).productFlops)
    facts.flops += double(flops) * double(plan.ranksPerStage());
  facts.peak = flags.peak.value_or(0) * double(facts.ranks);
  return facts;
}

static bool isTerminal() {
  const char *kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) && kind && std::string(kind) != "dumb";
}

static ProgressLine::Terminal terminal() {
  const char *noColour = std::getenv("NO_COLOR");
  auto columns = [] {
    winsize size = {};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? int64_t(size.ws_col) : 0;
  };
  return {printText, columns, !noColour || !*noColour};
}

std::vector<std::unique_ptr<RunObserver>> makeObservers(const ReportFlags &flags, const std::string &metrics, bool goesOn, int64_t steps,
                                                        const plan::Plan &plan, const StepData &data) {
  const RunFacts facts = factsOf(flags, steps, plan);
  std::vector<std::unique_ptr<RunObserver>> observers;
  auto add = [&](auto observer) {
    auto *added = observer.get();
    observers.push_back(std::move(observer));
    return added;
  };
  const std::string format = !flags.format.empty() ? flags.format : isTerminal() ? "bar" : flags.fallback;
  TextSink line = [](const std::string &text) { printText(text + "\n"); };
  std::function<void(const std::string &)> note = printNote;
  if (flags.quiet) {
    line = nullptr;
  } else if (format == "bar") {
    ProgressLine *bar = add(std::make_unique<ProgressLine>(facts, terminal()));
    line = [bar](const std::string &text) { bar->line(text); };
    note = [bar](const std::string &text) {
      bar->clear();
      printNote(text);
    };
  } else if (format == "paddlefleetx") {
    LogLines *lines = add(std::make_unique<LogLines>(facts, printText));
    line = [lines](const std::string &text) { lines->line(text); };
  } else {
    add(std::make_unique<StepLines>(facts, printText));
  }
  add(std::make_unique<StepNotes>(data, flags.spike, note));
  if (!metrics.empty())
    add(std::make_unique<MetricsFile>(metrics, goesOn, facts, note));
  if (!flags.tensorBoard.empty())
    add(std::make_unique<TensorBoard>(flags.tensorBoard, facts));
  if (flags.summarizes && line)
    add(std::make_unique<RunSummary>(facts, plan, line));
  return observers;
}

Expected<double> measurePeak(const plan::Plan &plan, int64_t ranks, int64_t threads) {
  Expected<host::MachineSpeed> speed = host::measureSpeed(ranks * threads, /*moves=*/false);
  HPC_RETURN_IF_ERROR(speed.status());
  std::map<DType, int64_t> products;
  for (const plan::Stage &stage : plan.stages)
    for (const plan::Program &program : stage.programs)
      for (const plan::Instruction &instruction : program.instructions)
        if (const auto *gemm = std::get_if<plan::Gemm>(&instruction.action))
          ++products[gemm->a.dtype];
  DType most = DType::F32;
  for (auto [type, count] : products)
    if (count > products[most])
      most = type;
  return speed->times(double(threads)).flopsPerSecond(most);
}

} // namespace hpc
