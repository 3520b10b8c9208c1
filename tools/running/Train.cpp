// All processes come to the same start, from the flags or from the checkpoint.
#include "tools/running/Train.h"

#include "runtime/base/CountText.h"
#include "runtime/base/File.h"
#include "runtime/base/Npz.h"
#include "runtime/base/NumberText.h"
#include "runtime/core/Checkpoint.h"
#include "runtime/plan/StepPorts.h"
#include "runtime/train/Loop.h"
#include "runtime/train/RunConfiguration.h"
#include "runtime/train/SkippedStep.h"
#include "runtime/train/observers/StepLines.h"
#include "runtime/train/observers/StepNotes.h"
#include "tools/ExitCode.h"
#include "tools/running/ParentProcess.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hpc {

static Status trainingUsage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

/// By the checkpoint, where the run goes on from one. One that cannot be read is an error of the session, which loads it.
static DataStart dataStartOf(const TrainFlags &flags) {
  DataStart start;
  start.seed = flags.seed.value_or(0);
  if (flags.load.empty())
    return start;
  Expected<std::map<std::string, std::string>> metadata = checkpointMetadata(flags.load);
  if (!metadata.ok())
    return start;
  Expected<RunState> state = RunState::fromMetadata(*metadata, flags.load);
  if (!state.ok())
    return start;
  start.seed = flags.seed.value_or(state->seed);
  start.steps = state->steps;
  int64_t samples = -1;
  if (auto found = metadata->find("sample"); found != metadata->end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), samples);
  if (samples >= 0)
    start.samples = samples;
  return start;
}

Status openTrainData(const TrainFlags &flags, const plan::Plan &plan, const std::vector<plan::Plan> &entries, TrainData &data,
                     std::vector<std::string> &notes) {
  TextData text(flags.text);
  const DataStart start = flags.onlyEvaluates() ? DataStart() : dataStartOf(flags);
  auto open = [&](size_t number, const std::string &names, DataPart part, std::unique_ptr<StepData> &opened) -> Status {
    std::vector<std::string> told;
    Expected<std::unique_ptr<StepData>> data = text.open(names, entries.empty() ? plan : entries[number], part, start, told);
    if (data.ok())
      opened = std::move(*data);
    for (const std::string &note : told) // two parts of one file say the same
      if (std::find(notes.begin(), notes.end(), note) == notes.end())
        notes.push_back(note);
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

static Status writeGradients(const TrainFlags &flags, const StepData &data, TrainingRun &run, bool isHome) {
  StepReport report;
  report.step = run.state().steps;
  Expected<NamedArrays> gradients = run.gradients(report);
  if (!gradients.ok())
    return gradients.status();
  if (isHome && report.wasSkipped())
    printNote(gradientNormText(report) + "; " + whySkipped(report, data, run.state()));
  return isHome ? writeNpz(flags.gradients, *gradients) : Status::success();
}

namespace {
/// The start of a run.
struct Start {
  RunState state;
  std::map<std::string, std::string> configuration; ///< of this run
  std::vector<std::string> notes;                   ///< differences from the checkpoint's run
};
} // namespace

/// Checks that the rate in the first step continues the curve of the checkpoint's run, or that a jump is requested.
static Status checkJump(const TrainFlags &flags, const LearningRate &mine, const LearningRate &saved, const StepData &data, int64_t step) {
  const double before = rateIn(step, saved, data), now = rateIn(step, mine, data);
  if (flags.allowJump || std::abs(before - now) <= 1e-12 * std::max(before, now))
    return Status::success();
  return trainingUsage(flags.loadFlag + ": in step " + std::to_string(step) + " the learning rate would be " + numberText(now) + ", and " + numberText(before) +
               " by the curve of the run that wrote '" + flags.load + "'; give its flags, " + flagsOf(saved) +
               ", or --new-schedule if the jump is meant");
}

/// Compares the settings of the checkpoint's run with those of this one.
static Status compareRuns(const TrainFlags &flags, const LearningRate &rate, const StepData &data, const std::map<std::string, std::string> &metadata, Start &start) {
  const std::string of = flags.loadFlag + ": '" + flags.load + "'";
  if (!hasConfiguration(metadata)) {
    start.notes.push_back(of + " is of an older hpc-run, which did not write how it was trained: learning rate, data and optimizer are those given "
                               "here, and all its steps count as updates, skipped ones too");
    return Status::success();
  }
  Expected<LearningRate> saved = learningRateOf(metadata, flags.load);
  if (!saved.ok())
    return saved.status();
  HPC_RETURN_IF_ERROR(checkJump(flags, rate, *saved, data, start.state.steps));
  for (const std::string &text : differences(metadata, start.configuration))
    start.notes.push_back(of + ": " + text);
  return Status::success();
}

/// From the flags, or, with --load, from the checkpoint.
static Expected<Start> startOf(const TrainFlags &flags, const plan::Plan &plan, const StepData &data) {
  const LearningRate rate = rateOf(flags);
  Start start{{}, configurationOf(plan, data, rate), {}};
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
      return trainingUsage(flags.loadFlag + ": '" + flags.load + "' is of " + countText(state.steps, "step") + ", and " +
                   (flags.epochs ? "--epochs=" + std::to_string(*flags.epochs) + ", which are " + countText(flags.steps, "step")
                                 : "--steps=" + std::to_string(flags.steps)) +
                   " in all leaves nothing to do; give more");
    if (flags.train)
      HPC_RETURN_IF_ERROR(compareRuns(flags, rate, data, *metadata, start));
    if (flags.lossScale && *flags.lossScale != state.lossScale.scale)
      start.notes.push_back("--loss-scale=" + numberText(*flags.lossScale) + " takes the place of " + numberText(state.lossScale.scale) +
                            ", which '" + flags.load + "' has come to");
  }
  state.seed = flags.seed.value_or(state.seed);
  state.lossScale.scale = flags.lossScale.value_or(state.lossScale.scale);
  if (flags.train && rate.peak > 0 && rateIn(state.steps, rate, data) == 0 && rateIn(flags.steps - 1, rate, data) == 0)
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
                        Evaluation *evaluation, bool isHome, const TrainHooks &hooks) {
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
    observers = makeObservers(flags.report, flags.metrics, !flags.load.empty(), flags.steps, plan, data);
  if (std::unique_ptr<RunObserver> reports = makeStepReports(); isHome && reports)
    observers.push_back(std::move(reports));
  LoopOptions options;
  options.steps = flags.steps;
  options.evaluateEvery = flags.evaluateEvery;
  options.mostSkipped = flags.mostSkipped;
  options.saves = {flags.checkpoints, flags.saveEvery, start->configuration};
  HPC_RETURN_IF_ERROR(session.agree(isHome ? hooks.begins() : Status::success()));
  HPC_RETURN_IF_ERROR(trainingLoop(options, *run, session, data, evaluation, observers, isHome));
  const bool isStopped = run->state().steps < flags.steps;
  if (isStopped && isHome)
    printNote("a signal ended the run after " + countText(run->state().steps, "step") + " of " + std::to_string(flags.steps) +
              "; it goes on from its last checkpoint");
  if (isStopped)
    return Status::success();
  if (!flags.save.empty()) {
    std::map<std::string, std::string> metadata = run->state().toMetadata();
    metadata.merge(start->configuration);
    metadata["sample"] = std::to_string(data.sampleOf(run->state().steps));
    HPC_RETURN_IF_ERROR(writeCheckpoint(flags.save, plan, session, metadata));
  }
  return session.agree(isHome ? hooks.ends() : Status::success());
}

Status trainPlan(const TrainFlags &given, Session &session, const TrainData &data, bool isHome, const TrainHooks &hooks) {
  TrainFlags flags = given;
  std::optional<Evaluation> evaluation;
  if (data.heldOut) {
    const int64_t most = flags.evaluateSteps.value_or(data.heldOut->count());
    Expected<Evaluation> made = Evaluation::create(data.evaluation, session, *data.heldOut, most);
    HPC_RETURN_IF_ERROR(made.status());
    evaluation.emplace(std::move(*made));
  }
  if (!flags.onlyEvaluates()) {
    HPC_RETURN_IF_ERROR(resolveSteps(flags, *data.batches));
    return trainPlan(flags, session.entry(0), session, *data.batches, evaluation ? &*evaluation : nullptr, isHome, hooks);
  }
  Expected<EvaluationReport> report = evaluation->run();
  HPC_RETURN_IF_ERROR(report.status());
  if (isHome)
    std::printf("%s\n", evaluationText(*report, -1).c_str());
  return session.agree(Status::success());
}

} // namespace hpc
