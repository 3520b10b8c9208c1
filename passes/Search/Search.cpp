// Load, bound, estimate, compile, answer: each step works on whole batches of rows, in an order that follows from the rows alone.
#include "passes/Search/Search.h"

#include "compiler/Dialect/NN/BatchDims.h"
#include "passes/Driver/RequestDegrees.h"
#include "passes/Phases.h"
#include "passes/Search/CandidateTable.h"
#include "passes/Search/LayoutChoice.h"
#include "passes/Search/NothingFits.h"
#include "passes/Stage/Trunk.h"
#include "runtime/cost/Predict.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

namespace hpc::search {

std::string Ranked::binds() const {
  if (isEstimate)
    return bubble > 0.5 ? "pipeline" : "-";
  return cost::bindingOf(exposed, bubble);
}

void Answer::applyTo(CompileRequest &request) const {
  const Candidate &candidate = winner().candidate;
  request.options = candidate.options(request.options);
  request.options.memory = memory;
  request.degrees = {{"dp", candidate.dp}, {"cp", candidate.cp}, {"tp", candidate.tp}, {"pp", candidate.pp}, {"mb", candidate.microBatches}};
  request.givesLayout = true;
  request.specText = candidate.sidecar;
  for (const char *flag : {"pp-chunks", "pp-schedule", "zero", "recompute", "cp-mode", "pp-split"}) // they are decided now
    request.given.insert(flag);
}

static Status usage(const Twine &message) { return Status::error(ErrorKind::Usage, message.str()); }

namespace {
class Search {
public:
  Search(const Question &question, MLIRContext &context, DiagnosticPrinter &diagnostics) : question(question), context(context), diagnostics(diagnostics) {}
  Expected<Answer> run();

private:
  Status load();
  Status takeDecisions(const std::optional<SpecFile> &spec);
  Status checkDegrees() const;
  Expected<OwningOpRef<ModuleOp>> runTo(StringRef phase, ModuleOp imported, int64_t microBatches) const;
  void describe(func::FuncOp function);
  /// The best that is known says so; an estimate may err by a little.
  bool seemsToFit(const Row &row) const {
    const int64_t limit = space.options.memory;
    return limit == 0 || row.memory() <= limit + (row.trial ? 0 : limit / 32);
  }
  /// Nothing says that it does not. Of a small program estimates err by more, so only a bound or a plan excludes.
  bool mayFit(const Row &row) const;
  bool isDominated(const Row &row) const;
  void profileBest();
  void compileBest();
  void chooseLayouts();
  void chooseSplits();
  double fastest() const;
  void explainWeights(Answer &answer);
  void relaxMemory(Answer &answer);
  Answer answer();

  const Question &question;
  MLIRContext &context;
  DiagnosticPrinter &diagnostics;
  Space space;
  OwningOpRef<ModuleOp> imported, raised, whole, pieces;
  std::optional<CandidateTable> table;
};
} // namespace

// ---- the program --------------------------------------------------------------------------------

/// The sidecar's mesh decides the axes that it names, too.
Status Search::takeDecisions(const std::optional<SpecFile> &spec) {
  space.decided = question.request.given;
  space.devices = *question.request.devices;
  if (!spec)
    return Status::success();
  for (const auto &[axis, size] : spec->sidecar.mesh)
    for (const dist::AxisKind &kind : dist::axisKinds())
      if (StringRef(axis).split('.').first == kind.name) {
        space.decided.insert(kind.flag);
        if (StringRef(axis).contains('.'))
          space.decided.insert("tp-layout");
      }
  const PlanChoices &choices = spec->sidecar.plan;
  for (auto [flag, isThere] : {std::pair("tp-layout", !spec->sidecar.layout.empty()), {"pp-chunks", choices.chunks.has_value()}, {"zero", choices.zero.has_value()},
                               {"pp-schedule", !choices.schedule.empty()}, {"recompute", !choices.recompute.empty()}, {"cp-mode", !choices.cpMode.empty()}, {"pp-split", !spec->sidecar.stages.empty()}})
    if (isThere)
      space.decided.insert(flag);
  return Status::success();
}

Status Search::checkDegrees() const {
  int64_t given = 1;
  std::string flags;
  bool allGiven = true;
  for (auto [kind, axis] : llvm::zip_equal(dist::axisKinds(), space.options.degrees.axes)) {
    if (kind.role == dist::AxisRole::Time)
      continue;
    allGiven &= space.isDecided(kind.flag);
    if (!space.isDecided(kind.flag))
      continue;
    given *= axis.size;
    flags += (flags.empty() ? "" : " * ") + std::string(kind.flag) + "=" + std::to_string(axis.size);
  }
  if (space.devices % given || (allGiven && given != space.devices))
    return usage("--auto --devices=" + Twine(space.devices) + ": the degrees that are given, " + flags + ", do not divide it; give " + Twine(given) +
                 (allGiven ? "" : " or a multiple") + " of devices, or leave a degree to --auto");
  return Status::success();
}

/// Errors are printed as in earnest; remarks are left to the compilation of the winner.
Expected<OwningOpRef<ModuleOp>> Search::runTo(StringRef phase, ModuleOp imported, int64_t microBatches) const {
  OwningOpRef<ModuleOp> program = imported.clone();
  Options options = space.options;
  options.degrees = dist::degreesOf({{"mb", microBatches}});
  if (failed(hpc::runPhases(*program, options, phase, [](StringRef) { return success(); }, [](PassManager &) {})))
    return Status::error(diagnostics.first.value_or(ErrorKind::Internal), "");
  return program;
}

void Search::describe(func::FuncOp function) {
  auto batchDims = nn::findBatchDims(function, space.options.batchDim);
  if (succeeded(batchDims))
    for (auto [argument, dim] : llvm::zip(function.getArguments(), *batchDims)) {
      RankedTensorType type = nn::tensorType(argument);
      if (!dim)
        continue;
      space.batch = type.getDimSize(unsigned(*dim));
      for (int64_t other = 0; other < type.getRank(); ++other)
        if (other != *dim)
          space.positions = std::max(space.positions, type.getDimSize(unsigned(other)));
    }
  space.products = int64_t(std::max<size_t>(1, findTrunk(function).products.size()));
}

Status Search::load() {
  // 1. The model and its sidecar, whose degrees need not be those of all devices.
  CompileRequest request = question.request;
  const Options &given = question.request.options;
  const cost::Machine machine = machineOf(given);
  if (!machine.differences.empty())
    return usage("--auto: the hosts of machine '" + machine.name + "' differ, and the search places equal ranks; give a machine of equal hosts, or choose the degrees and " +
                 "see hpc-run --backend=null --machine");
  HPC_RETURN_IF_ERROR(checkRanksOfMachine(given, *request.devices));
  request.devices.reset();
  request.options.setLayout(Options().layout()); // it may want more ranks than one
  Compilation compilation(request, context, diagnostics);
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &diagnostic) { return success(diagnostic.getSeverity() != DiagnosticSeverity::Error); });
  HPC_RETURN_IF_ERROR(compilation.load());
  if (phasesDone(*compilation.module) != 0)
    return usage("--auto: " + request.input + " is a file of --dump-phases, which was made for a layout already; start from the .onnx model, or leave --auto out");
  space.options = compilation.request.options;
  HPC_RETURN_IF_ERROR(takeDecisions(compilation.spec));
  HPC_RETURN_IF_ERROR(checkDegrees());
  if (question.request.given.count("tp-layout") || question.request.given.count("sp"))
    space.options.setLayout(given.layout());
  // 2. What all candidates share.
  imported = std::move(compilation.module);
  noteShapes(*imported);
  for (auto [phase, microBatches, program] : {std::tuple("raise", 1, &raised), {"precision", 1, &whole}, {"precision", 2, &pieces}}) {
    Expected<OwningOpRef<ModuleOp>> made = runTo(phase, raised ? *raised : *imported, microBatches);
    HPC_RETURN_IF_ERROR(made.status());
    *program = std::move(*made);
  }
  describe(whole->lookupSymbol<func::FuncOp>("main"));
  table.emplace(CandidateTable::Programs{*imported, *raised, *whole, *pieces}, space);
  space.blocks = table->space.blocks;
  return Status::success();
}

// ---- candidates ---------------------------------------------------------------------------------

/// Profiles at a time, and compilations: as many for any number of threads.
constexpr size_t together = 4;
/// A profile is a few small compilations; after so many the bound says what is left open.
static size_t mostProfiles(int64_t devices) { return std::min<size_t>(32, 8 + 4 * llvm::Log2_64_Ceil(uint64_t(devices))); }

/// Compilations whose order the simulation decides: more of a small program, and as few as there are of one that takes many seconds.
static size_t compilations(const CandidateTable &table) {
  return table.isLarge() ? together / 2 : size_t(std::clamp<int64_t>(20000 / std::max<int64_t>(1, table.work.ops), int64_t(together), 64));
}
static bool isSmall(const CandidateTable &table) { return compilations(table) > together; }
/// After so many times as many that all fail, nothing fits.
constexpr size_t mostVain = 16;
/// A gain that is worth a sentence, or several compilations: a share of the step.
constexpr double worthwhile = 0.01;

static double bySeconds(const Row &row) { return row.seconds(); }

bool Search::mayFit(const Row &row) const {
  return seemsToFit(row) || (!row.trial && isSmall(*table) && row.bound.memory <= space.options.memory);
}

/// Seconds of the fastest plan that was compiled and fits.
double Search::fastest() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Row &row : table->rows)
    if (row.trial && row.trial->fits.ok())
      least = std::min(least, row.trial->seconds);
  return least;
}

/// Recomputation saves memory alone, so a candidate that fits without needs no profile with it. In a small program the simulation decides.
bool Search::isDominated(const Row &row) const {
  if (row.isFamily)
    return false;
  const Row &keepsAll = table->rows[row.keepsAll];
  return &keepsAll != &row && keepsAll.estimate && mayFit(keepsAll) && !isSmall(*table);
}

/// The candidates with the smallest bounds get profiles, of very many those with the smallest guesses, until no other may be among the best that are compiled.
void Search::profileBest() {
  const size_t wanted = question.effort * compilations(*table);
  const bool spreads = isSmall(*table); // latencies decide, and bounds do not see them
  const bool areMany = !table->closed.empty();
  const size_t most = question.effort * mostProfiles(space.devices) * (spreads ? 4 : 1);
  bool fits = false;
  for (size_t made = 0; table->estimates() && made < (fits ? most : mostVain / 4 * most);) {
    // Of the guess, for each candidate of the same degrees that has a profile: others are looked at, too, and soon where none fits so far.
    const double again = fits ? 0.02 : 2;
    std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, size_t> known; // by degrees
    auto degreesOf = [](const Row &row) { return std::tuple(row.candidate.dp, row.candidate.cp, row.candidate.tp, row.candidate.pp); };
    for (const Row &row : table->rows)
      if (row.profiled)
        ++known[degreesOf(row)];
    auto isOpen = [&](const Row &row) { return !row.profiled && mayFit(row) && !isDominated(row); };
    const SmallVector<Row *> fastest = table->first(1, isOpen, bySeconds);
    const SmallVector<Row *> open = table->first(together, isOpen, [&](const Row &row) {
      const double times = double(known[degreesOf(row)]);
      return std::pair(spreads ? times : areMany ? row.guess * (1 + again * times) : 0, row.seconds());
    });
    const SmallVector<Row *> best = table->first(wanted, [&](const Row &row) { return row.estimate && seemsToFit(row) && !isDominated(row); }, bySeconds);
    if (open.empty() || (best.size() == wanted && best.back()->seconds() <= fastest.front()->seconds()))
      break;
    made += table->profile(open);
    fits = !table->first(1, [&](const Row &row) { return row.estimate && seemsToFit(row); }, bySeconds).empty();
  }
}

/// The best by estimate, or by bound where nothing is estimated, as long as a candidate's bound is below what was found.
void Search::compileBest() {
  const size_t most = question.effort * (table->estimates() ? 1 : 4) * compilations(*table);
  double found = std::numeric_limits<double>::infinity();
  auto isOpen = [&](const Row &row) {
    return !row.tried && mayFit(row) && !isDominated(row) && row.bound.seconds < found && (row.estimate || !table->estimates());
  };
  // --recompute=auto takes several compilations, so in a large program it waits: until nothing else fits, or until the fastest of the others is known.
  auto waits = [&](const Row &row) { return table->isLarge() && row.candidate.recompute == "auto"; };
  size_t tried = 0;
  for (size_t made = 0; made < most || (found == std::numeric_limits<double>::infinity() && tried < mostVain * most);) {
    const SmallVector<Row *> next = table->first(std::min(together, compilations(*table)), isOpen, [&](const Row &row) { return std::tuple(waits(row), !row.estimate, !seemsToFit(row), row.seconds()); });
    if (next.empty())
      break;
    table->compile(next);
    tried += next.size();
    for (const Row *row : next) {
      made += row->trial.has_value();
      if (row->trial && row->trial->fits.ok())
        found = std::min(found, row->trial->seconds);
    }
  }
  table->compile(table->first(1, [&](const Row &row) { return waits(row) && isOpen(row) && row.estimate && row.seconds() < found * (1 - worthwhile); }, bySeconds));
}

/// Largest program, in ops, whose weights are cut by exact search: that propagates the whole program a few times.
constexpr int64_t mostOpsOfLayouts = 3000;

/// The fastest plan with tensor parallelism, and the fastest of the layout of one axis, with their weights cut by exact search, where neither flag nor sidecar says the layout.
void Search::chooseLayouts() {
  if (space.isDecided("tp-layout") || space.isDecided("sp") || table->work.ops > mostOpsOfLayouts)
    return;
  auto isWanted = [](const Row &row, bool isOneDimensional) {
    return row.trial && row.trial->fits.ok() && row.candidate.tp > 1 && (!isOneDimensional || row.candidate.layout == Options().layout());
  };
  std::vector<Row> fastest;
  for (bool isOneDimensional : {false, true}) // all of tp's ranks are free along one axis
    for (const Row *row : table->first(1, [&](const Row &row) { return isWanted(row, isOneDimensional); }, bySeconds))
      if (fastest.empty() || fastest.front().candidate.flags() != row->candidate.flags())
        fastest.push_back(*row);
  for (const Row &row : fastest)
    table->addChosenLayout(row);
}

/// Pipelines whose layers StageProblem shares out, where no flag does: the fastest plan of one, and the fastest that are too large with balanced stages. Of a large
/// program only these, which are compiled if they are faster by their estimates.
void Search::chooseSplits() {
  if (space.isDecided("pp-split") || !table->estimates())
    return;
  SmallVector<Row *> from, chosen;
  if (!table->isLarge())
    from = table->first(1, [](const Row &row) { return row.trial && row.trial->fits.ok() && row.candidate.pp > 1; }, bySeconds);
  const double least = fastest();
  from.append(table->first(together, [&](const Row &row) { return row.estimate && row.candidate.pp > 1 && !seemsToFit(row) && row.seconds() < least; }, bySeconds));
  for (const Row *row : from)
    if (Row *split = table->addChosenSplit(*row); split && seemsToFit(*split) && (row->trial || split->seconds() < least))
      chosen.push_back(split);
  table->compile(chosen);
}

// ---- the answer ---------------------------------------------------------------------------------

static Ranked rankedOf(const Row &row) {
  Ranked ranked;
  ranked.number = row.number;
  ranked.candidate = row.candidate;
  ranked.seconds = row.seconds();
  ranked.memory = row.memory();
  ranked.isEstimate = !row.trial;
  if (!row.trial) {
    ranked.bubble = row.estimate->idle;
    return ranked;
  }
  for (auto [stage, memory] : llvm::enumerate(row.trial->memory))
    if (memory.total() == ranked.memory) {
      ranked.fullestStage = int64_t(stage);
      break;
    }
  ranked.received = row.trial->summary.received;
  ranked.exposed = row.trial->exposed;
  ranked.bubble = row.trial->bubble;
  return ranked;
}

Answer Search::answer() {
  Answer answer;
  answer.devices = space.devices;
  answer.memory = space.options.memory;
  answer.memoryIsGiven = question.request.given.count("memory") != 0;
  answer.machine = table->machine.name;
  answer.candidates = size_t(table->candidates);
  answer.leastSeconds = answer.atPeak = std::numeric_limits<double>::infinity();
  for (auto [row, family] : llvm::zip_equal(table->closed, table->families)) {
    answer.atPeak = std::min(answer.atPeak, leastSeconds(row.candidate, table->work, table->machine));
    if (mayFit(row))
      answer.leastSeconds = std::min(answer.leastSeconds, row.seconds());
    else
      answer.tooLarge += size_t(family.members);
  }
  for (const Row &row : table->rows) {
    answer.atPeak = std::min(answer.atPeak, leastSeconds(row.candidate, table->work, table->machine));
    answer.tooLarge += !seemsToFit(row);
    answer.estimated += row.estimate.has_value();
    answer.compiled += row.tried;
    answer.refused += row.isRefused();
    if (row.isRefused() || !mayFit(row) || isDominated(row))
      continue;
    answer.leastSeconds = std::min(answer.leastSeconds, row.seconds());
    if (!seemsToFit(row))
      continue;
    const Row &keepsAll = table->rows[row.keepsAll];
    const bool isSame = &keepsAll != &row && keepsAll.seconds() == row.seconds() && keepsAll.memory() == row.memory(); // nothing is computed again
    if ((row.trial || row.estimate) && !isSame)
      answer.best.push_back(rankedOf(row));
  }
  // Compiled candidates come first: an estimate is no plan yet.
  llvm::sort(answer.best, [](const Ranked &a, const Ranked &b) { return std::tie(a.isEstimate, a.seconds, a.number) < std::tie(b.isEstimate, b.seconds, b.number); });
  if (answer.best.size() > question.listed)
    answer.best.resize(question.listed);
  return answer;
}

/// With more memory another candidate would be faster: the one that needs the least more. It is compiled without a limit; a large program's is an estimate.
void Search::relaxMemory(Answer &answer) {
  if (space.options.memory == 0)
    return;
  const double most = answer.winner().seconds * (1 - worthwhile);
  auto isBeyond = [&](const Row &row) { return !row.isFamily && !seemsToFit(row) && row.seconds() < most && row.candidate.recompute != "auto"; };
  auto byMemory = [](const Row &row) { return std::pair(row.memory(), row.seconds()); };
  table->profile(table->estimates() ? table->first(together, [&](const Row &row) { return isBeyond(row) && !row.profiled; }, byMemory) : SmallVector<Row *>());
  const bool compiles = !table->isLarge();
  if (compiles)
    table->compile(table->first(together / 2, [&](const Row &row) { return isBeyond(row) && !row.tried && (row.estimate || !table->estimates()); }, byMemory), /*withoutLimit=*/true);
  const SmallVector<Row *> least = table->first(1, [&](const Row &row) { return isBeyond(row) && (row.trial || (!compiles && row.estimate)); }, byMemory);
  if (!least.empty())
    answer.memoryBinds = MemoryBinds{rankedOf(*least.front()), least.front()->memory() - space.options.memory};
}

/// One more search for each cut of each weight, unless the layout's own rules or none decide.
void Search::explainWeights(Answer &answer) {
  const Candidate &candidate = answer.winner().candidate;
  if (candidate.sidecar.empty()) {
    answer.weights = {candidate.tp == 1 ? "every weight is whole: no axis cuts weights"
                                        : "every weight is cut as the layout " + candidate.layout + " does: no sidecar that was tried is faster"};
    return;
  }
  Options options = candidate.options(space.options);
  options.memory = 0;
  Expected<LayoutChoice> choice = chooseLayout(candidate.microBatches > 1 ? *pieces : *whole, options, table->machine, /*explains=*/true);
  if (choice.ok())
    for (const WeightReason &reason : choice->reasons)
      answer.weights.push_back(reason.text());
}

Expected<Answer> Search::run() {
  HPC_RETURN_IF_ERROR(load());
  table->addCandidates();
  if (table->candidates == 0)
    return usage("--auto --devices=" + Twine(space.devices) + ": no degrees divide a batch of " + Twine(space.batch) + " over as many ranks; give a larger batch, or fewer devices");
  profileBest();
  compileBest();
  chooseSplits();
  chooseLayouts();
  Answer found = answer();
  if (found.best.empty() || found.winner().isEstimate)
    return whatWouldFit(*table);
  relaxMemory(found);
  if (question.explains)
    explainWeights(found);
  return found;
}

Expected<Answer> findPlan(const Question &question, MLIRContext &context, DiagnosticPrinter &diagnostics) {
  return Search(question, context, diagnostics).run();
}

} // namespace hpc::search
