// A step that changed nothing is reported when it happens; a run of such steps ends, since nothing will change it.
#include "tools/running/Train.h"

#include "runtime/base/ByteSize.h"
#include "runtime/base/CountText.h"
#include "runtime/base/File.h"
#include "runtime/base/Hash.h"
#include "runtime/base/LineFile.h"
#include "runtime/base/Npz.h"
#include "runtime/base/NumberText.h"
#include "runtime/core/Checkpoint.h"
#include "runtime/plan/StepPorts.h"
#include "runtime/train/Loop.h"
#include "runtime/train/RunConfiguration.h"
#include "runtime/train/SkippedStep.h"
#include "tools/ExitCode.h"
#include "tools/running/MetricsFile.h"
#include "tools/running/ParentProcess.h"
#include "tools/running/TextData.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hpc {

static Status trainingUsage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

TrainFlags readTrainFlags(const Arguments &arguments) {
  TrainFlags flags;
  flags.allowJump = arguments.has("allow-lr-jump");
  flags.data = arguments.text("data");
  flags.evaluate = arguments.text("evaluate");
  flags.evaluateEvery = arguments.whole("eval-every").value_or(0);
  flags.metrics = arguments.text("metrics");
  flags.curve = arguments.text("lr-schedule");
  flags.steps = arguments.whole("steps").value_or(0);
  flags.warmup = *arguments.whole("warmup");
  flags.curveSteps = arguments.whole("lr-steps");
  flags.rate = arguments.real("lr");
  flags.power = arguments.real("lr-power");
  flags.lossScale = arguments.real("loss-scale");
  flags.seed = arguments.whole("seed");
  flags.checkpoints.folder = arguments.text("checkpoints");
  flags.checkpoints.keep = arguments.whole("keep").value_or(flags.checkpoints.keep);
  flags.checkpoints.keepEvery = arguments.whole("keep-every").value_or(0);
  flags.checkpoints.isAsync = arguments.has("save-async");
  flags.saveEvery = arguments.whole("save-every").value_or(0);
  flags.shardSize = arguments.text("shard-size");
  if (Expected<int64_t> bytes = parseByteSize(flags.shardSize); bytes.ok())
    flags.checkpoints.shardBytes = *bytes;
  flags.text = readTextFlags(arguments);
  return flags;
}

/// The seed and the loss scale.
static Status checkNumbers(const TrainFlags &flags) {
  if (!flags.any() && (flags.seed || flags.lossScale))
    return trainingUsage(std::string(flags.seed ? "--seed" : "--loss-scale") + " is about training; add --train");
  if (!flags.lossScale)
    return Status::success();
  int exponent = 0;
  bool isPower = std::isfinite(*flags.lossScale) && std::frexp(*flags.lossScale, &exponent) == 0.5;
  if (!isPower || *flags.lossScale < LossScale::least || *flags.lossScale > LossScale::most)
    return trainingUsage("--loss-scale=" + numberText(*flags.lossScale) + " must be a power of two from 1 to 2^127");
  return Status::success();
}

Status checkTrainFlags(const Arguments &arguments, const TrainFlags &flags) {
  HPC_RETURN_IF_ERROR(checkNumbers(flags));
  if (!flags.any()) {
    for (auto [name, text] : {std::pair("--data", &flags.data), std::pair("--metrics", &flags.metrics),
                              std::pair("--save", &flags.save), std::pair("--load", &flags.load),
                              std::pair("--checkpoints", &flags.checkpoints.folder)})
      if (!text->empty())
        return trainingUsage(std::string(name) + " is about training; add --train");
    if (!flags.text.given.empty())
      return trainingUsage(flags.text.given[0] + " is about training; add --train");
    for (const Flag *flag : arguments.given(group::steps))
      return trainingUsage(flag->dashed() + " is about training; add --train");
    return Status::success();
  }
  HPC_RETURN_IF_ERROR(checkTextFlags(arguments, !flags.onlyEvaluates()));
  if (flags.evaluateEvery > 0 && !flags.evaluates())
    return trainingUsage("--eval-every is about --evaluate=FILE or a --split; add one, or leave --eval-every out");
  if (flags.onlyEvaluates()) {
    if (!flags.gradients.empty())
      return trainingUsage("--gradients is one backward step, and --evaluate none; give one of them");
    for (auto [name, text] : {std::pair("--data", &flags.data), std::pair("--metrics", &flags.metrics), std::pair("--save", &flags.save)})
      if (!text->empty())
        return trainingUsage(std::string("--evaluate alone computes a loss; leave out ") + name + ", or add --train");
    for (const Flag *flag : arguments.given(group::steps))
      return trainingUsage("--evaluate alone computes a loss; leave out " + flag->dashed() + ", or add --train");
    if (flags.seed || flags.lossScale)
      return trainingUsage(std::string("--evaluate alone computes a loss; leave out ") + (flags.seed ? "--seed" : "--loss-scale") + ", or add --train");
    return Status::success();
  }
  if (flags.data.empty())
    return trainingUsage(std::string(flags.train ? "--train" : "--gradients") + " needs --data=FILE");
  if (flags.train && !flags.gradients.empty())
    return trainingUsage("--gradients is one backward step without an update; leave --train out");
  if (!flags.train) {
    if (!flags.save.empty() || !flags.metrics.empty())
      return trainingUsage("--gradients writes gradients alone; leave out --save and --metrics, or use --train");
    for (const Flag *flag : arguments.given(group::steps))
      return trainingUsage("--gradients is one backward step without an update; leave out " + flag->dashed() + ", or use --train");
    return Status::success();
  }
  if (flags.checkpoints.folder.empty())
    for (const char *name : {"save-every", "keep", "keep-every", "save-async", "shard-size"})
      if (arguments.has(name))
        return trainingUsage(std::string("--") + name + " is about --checkpoints=FOLDER; add it, or leave --" + name + " out");
  if (Expected<int64_t> bytes = parseByteSize(flags.shardSize); !bytes.ok())
    return trainingUsage("--shard-size=" + flags.shardSize + " " + bytes.status().message());
  if (!flags.rate)
    return trainingUsage("--train needs --lr, the learning rate");
  if (!(*flags.rate >= 0 && *flags.rate <= std::numeric_limits<float>::max()))
    return trainingUsage("--lr=" + numberText(*flags.rate) + " must be at least 0, and a number that f32 holds");
  if (flags.steps < 1)
    return trainingUsage("--train needs --steps=N, at least 1");
  if (flags.curveSteps && flags.curve == "constant")
    return trainingUsage("--lr-steps says where a curve ends, and --lr-schedule=constant has no end; leave it out, or use "
                 "another curve");
  const int64_t end = flags.curveSteps.value_or(flags.steps);
  if (flags.warmup < 0 || flags.warmup > end)
    return trainingUsage("--warmup=" + std::to_string(flags.warmup) + " must be from 0 to the " + std::to_string(end) +
                 " steps of the curve");
  if (flags.power && flags.curve != "polynomial")
    return trainingUsage("--lr-power is of --lr-schedule=polynomial, and the curve is " + flags.curve + "; leave it out, or use that one");
  if (flags.power && !(std::isfinite(*flags.power) && *flags.power > 0))
    return trainingUsage("--lr-power=" + numberText(*flags.power) + " must be a finite number above 0");
  return Status::success();
}

/// Of the order of the data: the checkpoint's, where the run goes on from one.
static Expected<int64_t> seedOf(const TrainFlags &flags) {
  if (flags.seed || flags.load.empty() || !flags.text.shuffle)
    return flags.seed.value_or(0);
  Expected<std::map<std::string, std::string>> metadata = checkpointMetadata(flags.load);
  HPC_RETURN_IF_ERROR(metadata.status());
  Expected<RunState> state = RunState::fromMetadata(*metadata, flags.load);
  HPC_RETURN_IF_ERROR(state.status());
  return state->seed;
}

Status openTrainData(const TrainFlags &flags, const plan::Plan &plan, const std::vector<plan::Plan> &entries, TrainData &data,
                     std::vector<std::string> &notes) {
  TextData text(flags.text);
  Expected<int64_t> seed = seedOf(flags);
  HPC_RETURN_IF_ERROR(seed.status());
  auto open = [&](size_t number, const std::string &names, DataPart part, std::unique_ptr<StepData> &opened) -> Status {
    Expected<std::unique_ptr<StepData>> data = text.open(names, entries.empty() ? plan : entries[number], part, *seed, notes);
    if (data.ok())
      opened = std::move(*data);
    return data.status();
  };
  if (!flags.onlyEvaluates()) {
    HPC_RETURN_IF_ERROR(checkTrains(entries.empty() ? plan : entries[0]));
    HPC_RETURN_IF_ERROR(open(0, flags.data, DataPart::Training, data.batches).at("--data"));
  }
  if (!flags.evaluates())
    return text.checkUsed();
  Expected<size_t> entry = evaluationEntry(plan);
  HPC_RETURN_IF_ERROR(entry.status());
  data.evaluation = *entry;
  // The rows for a test are for the trained model.
  const bool isTest = flags.onlyEvaluates() && !flags.text.shares.empty() && flags.text.shares[2] > 0;
  const bool hasFile = !flags.evaluate.empty();
  HPC_RETURN_IF_ERROR(open(*entry, hasFile ? flags.evaluate : flags.data, isTest ? DataPart::Test : DataPart::Validation, data.heldOut)
                          .at(hasFile ? "--evaluate" : "--split"));
  return text.checkUsed();
}

static LearningRate rateOf(const TrainFlags &flags) {
  LearningRate rate;
  rate.peak = flags.rate.value_or(0);
  rate.curve = parseCurve(flags.curve).value_or(rate.curve);
  rate.warmup = flags.warmup;
  rate.steps = flags.curveSteps.value_or(flags.steps);
  rate.power = flags.power.value_or(rate.power);
  return rate;
}

uint64_t fingerprint(const TrainFlags &flags) {
  const LearningRate rate = rateOf(flags);
  const double numbers[] = {double(flags.train), double(flags.allowJump), double(flags.steps), double(!flags.save.empty()),
                            double(!flags.gradients.empty()), rate.peak, double(rate.curve), double(rate.warmup),
                            double(rate.steps), rate.power, double(flags.seed.value_or(-1)),
                            double(flags.evaluates()), double(flags.evaluateEvery),
                            flags.lossScale.value_or(0), double(!flags.checkpoints.folder.empty()), double(flags.saveEvery),
                            double(flags.checkpoints.isAsync), double(flags.checkpoints.shardBytes)};
  return hashBytes(reinterpret_cast<const std::byte *>(numbers), sizeof(numbers));
}

/// "the gradient norm is nan with a loss scale of 1024".
static std::string normText(const StepReport &report) {
  return "the gradient norm is " + numberText(report.gradientNorm) +
         (report.lossScale ? " with a loss scale of " + numberText(*report.lossScale) : "");
}

static Status writeGradients(const TrainFlags &flags, const StepData &data, TrainingRun &run, bool isHome) {
  StepReport report;
  report.step = run.state().steps;
  Expected<NamedArrays> gradients = run.gradients(report);
  if (!gradients.ok())
    return gradients.status();
  if (isHome && report.wasSkipped())
    printNote(normText(report) + "; " + whySkipped(report, data, run.state()));
  return isHome ? writeNpz(flags.gradients, *gradients) : Status::success();
}

/// The printed lines, and --metrics.
class TrainingLines : public RunObserver {
public:
  TrainingLines(const TrainFlags &flags, const StepData *data) : flags(flags), data(data) {}

  Status started(const RunState &state) override {
    if (flags.metrics.empty())
      return Status::success();
    Expected<LineFile> opened = flags.load.empty() ? LineFile::open(flags.metrics, /*append=*/false) : continueMetrics(flags.metrics, state.steps);
    if (opened.ok())
      metrics.emplace(std::move(*opened));
    return opened.status();
  }

  Status stepped(const StepReport &report, const RunState &state) override {
    std::printf("step %ld: loss %.9g, lr %.6g, gradient norm %.6g, %.1f ms\n", long(report.step), printed(report.loss),
                report.learningRate, printed(report.gradientNorm), report.milliseconds);
    std::fflush(stdout);
    if (report.wasSkipped())
      printNote("step " + std::to_string(report.step) + ": " + normText(report) +
                ", so weights, states and the count of updates stay as they were; " + whySkipped(report, *data, state));
    else if (!std::isfinite(report.loss))
      printNote("step " + std::to_string(report.step) + ": the loss is " + numberText(printed(report.loss)) +
                ", beyond the range in which it is added up; its gradients are finite, so the step was done");
    return metrics ? metrics->add(metricsLine(report)) : Status::success();
  }

  Status evaluated(const EvaluationReport &report, int64_t step) override {
    std::printf("evaluation%s: loss %.9g", step < 0 ? "" : (" after step " + std::to_string(step)).c_str(), printed(report.loss));
    if (report.validTokens)
      std::printf(", perplexity %.6g, valid tokens %.0f", printed(*report.perplexity()), *report.validTokens);
    std::printf(", %s, %.1f ms\n", countText(report.batches, "batch", "es").c_str(), report.milliseconds);
    std::fflush(stdout);
    return metrics ? metrics->add(metricsLine(report, step)) : Status::success();
  }

  Status saved(const SaveReport &report) override {
    std::printf("checkpoint '%s': %s in %.2f s, in which no step ran for %.3f s\n", report.path.c_str(), byteSizeText(report.bytes).c_str(),
                report.seconds, report.stopped);
    std::fflush(stdout);
    return Status::success();
  }

private:
  const TrainFlags &flags;
  const StepData *data; ///< null where there are no steps
  std::optional<LineFile> metrics;
};

namespace {
/// The start of a run.
struct Start {
  RunState state;
  std::map<std::string, std::string> configuration; ///< of this run
  std::vector<std::string> notes;                   ///< differences from the checkpoint's run
};
} // namespace

/// Checks that the rate in the first step continues the curve of the checkpoint's run, or that a jump is requested.
static Status checkJump(const TrainFlags &flags, const LearningRate &saved, int64_t step) {
  const LearningRate mine = rateOf(flags);
  const double before = saved.at(step), now = mine.at(step);
  if (flags.allowJump || std::abs(before - now) <= 1e-12 * std::max(before, now))
    return Status::success();
  return trainingUsage("--load: in step " + std::to_string(step) + " the learning rate would be " + numberText(now) + ", and " + numberText(before) +
               " by the curve of the run that wrote '" + flags.load + "'; give its flags, " + flagsOf(saved) +
               ", or --allow-lr-jump if the jump is meant");
}

/// Compares the settings of the checkpoint's run with those of this one.
static Status compareRuns(const TrainFlags &flags, const std::map<std::string, std::string> &metadata, Start &start) {
  const std::string of = "--load: '" + flags.load + "' is of ";
  if (!hasConfiguration(metadata)) {
    start.notes.push_back(of + "an older hpc-run, which did not write how it was trained: learning rate, data and optimizer are those given "
                               "here, and all its steps count as updates, skipped ones too");
    return Status::success();
  }
  Expected<LearningRate> saved = learningRateOf(metadata, flags.load);
  if (!saved.ok())
    return saved.status();
  HPC_RETURN_IF_ERROR(checkJump(flags, *saved, start.state.steps));
  for (const std::string &text : differences(metadata, start.configuration))
    start.notes.push_back(of + "a run with " + text);
  return Status::success();
}

/// From the flags, or, with --load, from the checkpoint.
static Expected<Start> startOf(const TrainFlags &flags, const plan::Plan &plan, const StepData &data) {
  Start start{{}, configurationOf(plan, data, rateOf(flags)), {}};
  RunState &state = start.state;
  if (!flags.load.empty()) {
    Expected<std::map<std::string, std::string>> metadata = checkpointMetadata(flags.load);
    if (!metadata.ok())
      return metadata.status();
    Expected<RunState> saved = RunState::fromMetadata(*metadata, flags.load);
    if (!saved.ok())
      return saved.status();
    state = *saved;
    if (flags.seed && *flags.seed != state.seed)
      return trainingUsage("--seed=" + std::to_string(*flags.seed) + ", but '" + flags.load + "' is of a run with seed " +
                   std::to_string(state.seed) + ", which goes on with it; leave --seed out");
    if (flags.train && state.steps >= flags.steps)
      return trainingUsage("--load: '" + flags.load + "' is of " + countText(state.steps, "step") + ", and --steps=" +
                   std::to_string(flags.steps) + " in all leaves nothing to do; give more");
    if (flags.train)
      HPC_RETURN_IF_ERROR(compareRuns(flags, *metadata, start));
    if (flags.lossScale && *flags.lossScale != state.lossScale.scale)
      start.notes.push_back("--loss-scale=" + numberText(*flags.lossScale) + " takes the place of " + numberText(state.lossScale.scale) +
                            ", which '" + flags.load + "' has come to");
  }
  state.seed = flags.seed.value_or(state.seed);
  state.lossScale.scale = flags.lossScale.value_or(state.lossScale.scale);
  const LearningRate rate = rateOf(flags);
  if (flags.train && rate.peak > 0 && rate.at(state.steps) == 0 && rate.at(flags.steps - 1) == 0)
    start.notes.push_back("the learning rate is 0 in all steps from " + std::to_string(state.steps) + " on, where its curve has ended (" +
                          flagsOf(rate) + "): nothing is learnt");
  return start;
}

/// A flag that would do nothing is a mistake.
static Status checkUse(const TrainFlags &flags, const plan::Plan &plan) {
  auto wants = [&](const std::string &name) {
    return std::any_of(plan.inputs.begin(), plan.inputs.end(),
                       [&](const plan::Port &port) { return port.isStepScalar && port.name == name; });
  };
  if (flags.lossScale && !wants(plan::lossScaleName))
    return trainingUsage("--loss-scale is of plans that scale their loss (hpc-opt --train --dtype=fp16, or a model in f16), which this "
                 "one does not; leave it out");
  return Status::success();
}

static Status trainPlan(const TrainFlags &flags, const plan::Plan &plan, Session &session, const StepData &data,
                        Evaluation *evaluation, bool isHome) {
  HPC_RETURN_IF_ERROR(checkUse(flags, plan));
  Expected<Start> start = startOf(flags, plan, data);
  if (!start.ok())
    return start.status();
  for (const std::string &note : start->notes)
    if (isHome)
      printNote(note);
  Expected<TrainingRun> run = TrainingRun::create(plan, session, data, rateOf(flags), start->state);
  if (!run.ok())
    return run.status();
  if (!flags.train)
    return writeGradients(flags, data, *run, isHome);
  std::vector<std::unique_ptr<RunObserver>> observers;
  if (isHome)
    observers.push_back(std::make_unique<TrainingLines>(flags, &data));
  if (std::unique_ptr<RunObserver> reports = makeStepReports(); isHome && reports)
    observers.push_back(std::move(reports));
  LoopOptions options;
  options.steps = flags.steps;
  options.evaluateEvery = flags.evaluateEvery;
  options.saves = {flags.checkpoints, flags.saveEvery, start->configuration};
  HPC_RETURN_IF_ERROR(trainingLoop(options, *run, session, data, evaluation, observers, isHome));
  const bool isStopped = run->state().steps < flags.steps;
  if (isStopped && isHome)
    printNote("a signal ended the run after " + countText(run->state().steps, "step") + " of " + std::to_string(flags.steps) +
              "; it goes on from its last checkpoint");
  if (flags.save.empty() || isStopped)
    return Status::success();
  std::map<std::string, std::string> metadata = run->state().toMetadata();
  metadata.merge(start->configuration);
  return writeCheckpoint(flags.save, plan, session, metadata);
}

Status trainPlan(const TrainFlags &flags, Session &session, const TrainData &data, bool isHome) {
  std::optional<Evaluation> evaluation;
  if (data.heldOut) {
    Expected<Evaluation> made = Evaluation::create(data.evaluation, session, *data.heldOut);
    HPC_RETURN_IF_ERROR(made.status());
    evaluation.emplace(std::move(*made));
  }
  if (!flags.onlyEvaluates())
    return trainPlan(flags, session.entry(0), session, *data.batches, evaluation ? &*evaluation : nullptr, isHome);
  Expected<EvaluationReport> report = evaluation->run();
  HPC_RETURN_IF_ERROR(report.status());
  return session.agree(isHome ? TrainingLines(flags, nullptr).evaluated(*report, -1) : Status::success());
}

} // namespace hpc
