// Budgets are found by trying: what a stage takes beside what it keeps changes little with what it keeps, so each try
// corrects the last one's error, and few are needed.
#include "passes/Driver/Trial.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "compiler/ModuleAttributes.h"
#include "passes/Lower/Lower.h"
#include "passes/Phases.h"
#include "passes/Place/Place.h"
#include "passes/Schedule/Schedule.h"
#include "runtime/cost/Predict.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

namespace hpc {

static constexpr int maxTries = 8;

int64_t Trial::peak() const {
  int64_t most = 0;
  for (const plan::MemoryFacts &facts : memory)
    most = std::max(most, facts.total());
  return most;
}

int64_t Trial::lasting() const {
  int64_t most = 0;
  for (const plan::MemoryFacts &facts : memory)
    most = std::max(most, facts.weight + facts.state + facts.step);
  return most;
}

/// MLIR's own verifier, which runs after each pass, is left to the compilation in earnest; the verify passes of phases are not.
static Status runQuietly(ModuleOp module, const Options &options, StringRef last) {
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) { return success(); });
  bool ok = succeeded(runPhases(
      module, options, last, [](StringRef) { return success(); },
      [](PassManager &passes) { passes.enableVerifier(false); }));
  return ok ? Status::success() : Status::error(ErrorKind::Capacity, "");
}

/// The rest of the way of a program that has been through phase recompute, where it is part of it.
static Expected<Trial> tryRecomputed(ModuleOp module, const Options &options) {
  HPC_RETURN_IF_ERROR(runQuietly(module, options, ""));
  Expected<Lowered> lowered = lowerToPlan(module, {});
  if (!lowered.ok())
    return lowered.status();
  const cost::Machine machine = machineOf(options);
  HPC_RETURN_IF_ERROR(schedulePlan(lowered->plan, lowered->noted));
  Status fits = placeBuffers(lowered->plan, {options.memory});
  if (!fits.ok() && fits.kind() != ErrorKind::Capacity)
    return fits;
  plan::PlanFacts facts = plan::staticFacts(lowered->plan);
  ArrayRef<int64_t> kept = keptBytes(module);
  Trial trial;
  trial.memory = facts.memory;
  trial.kept.assign(kept.begin(), kept.end());
  trial.kept.resize(trial.memory.size());
  trial.ranks = lowered->plan.ranksPerStage() * int64_t(lowered->plan.stages.size());
  trial.summary = plan::summarize(lowered->plan, facts);
  trial.fits = std::move(fits);
  Expected<cost::Prediction> step = cost::predict(lowered->plan, machine);
  HPC_RETURN_IF_ERROR(step.status());
  trial.seconds = step->seconds;
  trial.costs = cost::stageCosts(lowered->plan, machine);
  trial.bubble = step->bubble;
  trial.exposed = step->exposed();
  return trial;
}

/// `options` as phases after recompute read them.
static DictionaryAttr readAfterRecompute(Options options, MLIRContext *context) {
  options.recompute = Options().recompute;
  return options.toAttribute(context);
}

Expected<Trial> StagedTrials::run(ModuleOp staged, const Options &given) {
  constexpr size_t most = 3; // a candidate's own tries follow each other
  Options options = given;
  options.withoutCode = true;
  MLIRContext *context = staged.getContext();
  OwningOpRef<ModuleOp> program = staged.clone();
  if (options.trains() && phasesDone(staged) < phasesUpTo("recompute"))
    HPC_RETURN_IF_ERROR(runQuietly(*program, options, "recompute"));
  for (const Known &each : known)
    if (readAfterRecompute(each.options, context) == readAfterRecompute(options, context) &&
        OperationEquivalence::isEquivalentTo(*each.recomputed, *program, OperationEquivalence::None))
      return each.trial;
  OwningOpRef<ModuleOp> copy = program->clone();
  ++plans;
  Expected<Trial> trial = tryRecomputed(*copy, options);
  if (!trial.ok())
    return trial;
  known.push_front({options, std::move(program), *trial});
  if (known.size() > most)
    known.pop_back();
  return trial;
}

ManyThreads::ManyThreads(MLIRContext *context) : context(context), had(context->isMultithreadingEnabled()) {
  loadDialectsOfPasses(*context);
  context->enableMultithreading();
}

ManyThreads::~ManyThreads() { context->disableMultithreading(!had); }

// ---- what tries share ---------------------------------------------------------------------------

Trials::Program &Trials::programOf(StringRef phase, const Options &options) {
  std::lock_guard<std::mutex> lock(mutex);
  return done[{phase.str(), options.toAttribute(context()).getAsOpaquePointer()}];
}

Expected<ModuleOp> Trials::after(StringRef phase, ModuleOp before, const Options &options) {
  if (phasesDone(before) >= phasesUpTo(phase))
    return before;
  Program &program = programOf(phase, options);
  std::call_once(program.once, [&] {
    OwningOpRef<ModuleOp> copy = before.clone();
    program.status = runQuietly(*copy, options, phase);
    if (program.status.ok())
      program.module = std::move(copy);
  });
  HPC_RETURN_IF_ERROR(program.status);
  return *program.module;
}

int64_t Trials::made(StringRef phase) const {
  return llvm::count_if(done, [&](auto &entry) { return entry.first.first == phase && entry.second.module; });
}

/// `options` as the phases up to partition read them: not how the pipeline is cut, nor what is computed again.
static Options readUpToPartition(const Options &options) {
  const Options defaults;
  Options read = options;
  for (auto [axis, alone] : llvm::zip_equal(read.degrees.axes, defaults.degrees.axes))
    if (axis.role == dist::AxisRole::Pipeline)
      axis.size = alone.size;
  read.ppSplit = defaults.ppSplit;
  read.ppChunks = defaults.ppChunks;
  read.ppSchedule = defaults.ppSchedule;
  read.recompute = defaults.recompute;
  read.memory = defaults.memory;
  return read;
}

void Trials::takePartitioned(const Options &options, OwningOpRef<ModuleOp> program) {
  Program &known = programOf("partition", readUpToPartition(options));
  std::call_once(known.once, [&] { known.module = std::move(program); });
}

Expected<ModuleOp> Trials::partitioned(const Options &options) {
  return after("partition", module, readUpToPartition(options));
}

Expected<ModuleOp> Trials::staged(const Options &options) {
  Expected<ModuleOp> before = partitioned(options);
  return before.ok() ? after("stage", *before, options) : before;
}

Expected<Trial> Trials::run(const Options &options, StagedTrials &tries) {
  Expected<ModuleOp> program = staged(options);
  if (!program.ok())
    return program.status();
  Options chosen = options;
  if (options.recompute == "auto" && options.budgets.empty() && options.trains() && phasesDone(module) < phasesUpTo("stage")) {
    Expected<SmallVector<int64_t>> budgets = chooseBudgets(tries, *program, options);
    if (!budgets.ok())
      return budgets.status();
    chosen.budgets = *budgets;
  }
  return tries.run(*program, chosen);
}

/// Bytes of states, and of parameters that a step writes: these are stored as they are, whole or as they are cut.
static int64_t lastingBytes(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function || function.isExternal())
    return 0;
  const std::map<std::string, unsigned> written = nn::writtenBy(function);
  std::map<std::string, int64_t> bytes; // by name: a parameter may have several ops
  auto note = [&](const std::string &name, Value value) {
    if (auto type = nn::tensorType(value); written.count(name))
      bytes[name] = std::max(bytes[name], type.getNumElements() * elementBytes(type.getElementType()));
  };
  for (BlockArgument argument : function.getArguments())
    note(nn::argumentPort(function, argument.getArgNumber()).state, argument);
  function.walk([&](nn::ParameterOp parameter) { note(parameter.getName().str(), parameter.getResult()); });
  int64_t sum = 0;
  for (auto &[name, each] : bytes)
    sum += each;
  return sum;
}

int64_t Trials::meanLasting(const Options &options) {
  return phasesDone(module) >= phasesUpTo("partition") ? 0 : lastingBytes(module) / dist::ranksOf(options.degrees);
}

Expected<int64_t> Trials::leastLasting(const Options &options) {
  // 1. Some rank has no less than the mean.
  if (int64_t least = meanLasting(options); least > options.memory)
    return least;
  // 2. What is not cut is there on each rank of a stage.
  Expected<ModuleOp> program = partitioned(options);
  if (!program.ok())
    return program.status();
  return lastingBytes(*program) / options.stages();
}

Expected<bool> Trials::keepsTooMuch(const Options &options) {
  Expected<ModuleOp> program = staged(options);
  if (!program.ok() || !options.trains() || options.recompute == "auto" || phasesDone(*program) >= phasesUpTo("recompute"))
    return program.ok() ? Expected<bool>(false) : program.status();
  OwningOpRef<ModuleOp> copy = program->clone();
  HPC_RETURN_IF_ERROR(runQuietly(*copy, options, "recompute"));
  Expected<int64_t> lasting = leastLasting(options);
  HPC_RETURN_IF_ERROR(lasting.status());
  int64_t kept = 0;
  for (int64_t ofStage : keptBytes(*copy))
    kept += ofStage;
  return *lasting + kept / options.stages() > options.memory;
}

// ---- budgets ------------------------------------------------------------------------------------

namespace {
/// Facts about one stage's budget.
struct Search {
  std::optional<int64_t> fits; ///< the largest that was seen to fit: bytes kept
  int64_t tooMuch = std::numeric_limits<int64_t>::max();
  int64_t budget = std::numeric_limits<int64_t>::max(); ///< to try next
  bool done = false;

  void learn(int64_t kept, int64_t total, int64_t memory) {
    if (done)
      return;
    if (total <= memory) {
      fits = std::max(fits.value_or(0), kept);
      // Another try is worth it if much memory is left over; all values may be kept by now.
      int64_t more = kept + (memory - total);
      done = budget == std::numeric_limits<int64_t>::max() || memory - total < memory / 64 || more >= tooMuch;
      if (!done)
        budget = more;
      return;
    }
    done = kept > budget || kept == 0; // not even the least fits
    tooMuch = std::min(tooMuch, kept);
    budget = std::max<int64_t>(0, kept - (total - memory));
    if (fits && budget <= *fits)
      done = true;
  }
  int64_t chosen() const { return fits ? *fits : budget; }
};
} // namespace

Expected<SmallVector<int64_t>> chooseBudgets(StagedTrials &trials, ModuleOp staged, const Options &options) {
  std::vector<Search> stages(size_t(options.stages()));
  Options attempt = options;
  auto budgets = [&](auto of) {
    SmallVector<int64_t> all;
    for (const Search &stage : stages)
      all.push_back(of(stage));
    return all;
  };
  for (int tries = 0; tries < maxTries; ++tries) {
    attempt.budgets = budgets([](const Search &stage) { return stage.done ? stage.chosen() : stage.budget; });
    Expected<Trial> trial = trials.run(staged, attempt);
    if (!trial.ok())
      return trial.status();
    if (trial->memory.size() != stages.size())
      return Status::error(ErrorKind::Internal, "a plan of " + std::to_string(trial->memory.size()) + " stages with --pp=" +
                                                    std::to_string(options.stages()));
    for (size_t stage = 0; stage < stages.size(); ++stage)
      stages[stage].learn(trial->kept[stage], trial->memory[stage].total(), options.memory);
    if (llvm::all_of(stages, [](const Search &stage) { return stage.done; }))
      break;
  }
  // A budget that keeps everything is none: what a stage keeps is counted, and the count is its budget.
  return budgets([](const Search &stage) { return stage.chosen(); });
}

} // namespace hpc
