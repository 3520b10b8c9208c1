// Rows of a table, one a candidate, get better known step by step. A step works on whole batches of rows, in an order that follows from the rows
// alone, so threads change nothing.
#include "passes/Search/Search.h"

#include "passes/Driver/RequestDegrees.h"
#include "passes/Phases.h"
#include "passes/Stage/Blocks.h"
#include "compiler/Dialect/NN/BatchDims.h"
#include "runtime/base/ByteSize.h"
#include "runtime/base/CountText.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Threading.h"
#include "mlir/Pass/PassManager.h"

namespace hpc::search {

std::string Ranked::binds() const {
  const double computing = 1 - exposed - bubble;
  return computing >= exposed && computing >= bubble ? "computation" : exposed >= bubble ? "communication" : "pipeline";
}

static Status usage(const Twine &message) { return Status::error(ErrorKind::Usage, message.str()); }

namespace {
struct Row {
  Candidate candidate;
  int64_t leastMemory = 0;
  double leastSeconds = 0;
  std::optional<Trial> trial; ///< of a candidate that compiles
  bool tried = false;
};

/// The program before it is cut, for one micro-batch and for several.
struct Programs {
  OwningOpRef<ModuleOp> whole, pieces;
  ModuleOp of(const Candidate &candidate) const { return candidate.microBatches > 1 ? *pieces : *whole; }
};

class Search {
public:
  Search(const Question &question, MLIRContext &context, DiagnosticPrinter &diagnostics) : question(question), context(context), diagnostics(diagnostics) {}
  Expected<Answer> run();

private:
  Status load();
  Status takeDecisions(const std::optional<SpecFile> &spec);
  Status checkDegrees() const;
  Expected<OwningOpRef<ModuleOp>> toPrecision(ModuleOp imported, int64_t microBatches) const;
  void describe(ModuleOp program);
  void addRows(int64_t devices);
  void compileRows(ArrayRef<Row *> batch);
  void compileBest();
  Answer answer();

  const Question &question;
  MLIRContext &context;
  DiagnosticPrinter &diagnostics;
  const cost::Machine machine = machineOf(question.request.options);
  Space space;
  Programs programs;
  Work work;
  std::vector<Row> rows;
  size_t tooLarge = 0;
};
} // namespace

// ---- the program --------------------------------------------------------------------------------

/// What the sidecar's mesh names is decided, too.
Status Search::takeDecisions(const std::optional<SpecFile> &spec) {
  space.decided = question.decided;
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
  if (!spec->sidecar.layout.empty())
    space.decided.insert("tp-layout");
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
Expected<OwningOpRef<ModuleOp>> Search::toPrecision(ModuleOp imported, int64_t microBatches) const {
  OwningOpRef<ModuleOp> program = imported.clone();
  Options options = space.options;
  options.degrees = dist::degreesOf({{"mb", microBatches}});
  if (failed(hpc::runPhases(*program, options, "precision", [](StringRef) { return success(); }, [](PassManager &) {})))
    return Status::error(diagnostics.first.value_or(ErrorKind::Internal), "");
  return program;
}

void Search::describe(ModuleOp program) {
  auto function = program.lookupSymbol<func::FuncOp>("main");
  work = workOf(program, machine);
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
  const Trunk trunk = findTrunk(function);
  space.products = int64_t(std::max<size_t>(1, trunk.products.size()));
  space.blocks = int64_t(findBlocks(function, 1).size());
}

Status Search::load() {
  // 1. The model and its sidecar, whose degrees need not be those of all devices.
  CompileRequest request = question.request;
  request.devices.reset();
  Compilation compilation(request, context, diagnostics);
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &diagnostic) { return success(diagnostic.getSeverity() != DiagnosticSeverity::Error); });
  HPC_RETURN_IF_ERROR(compilation.load());
  if (phasesDone(*compilation.module) != 0)
    return usage("--auto: " + request.input + " is a program of --dump-phases, which has its layout's options already; start from the .onnx model, or leave --auto out");
  space.options = compilation.request.options;
  HPC_RETURN_IF_ERROR(takeDecisions(compilation.spec));
  HPC_RETURN_IF_ERROR(checkDegrees());
  // 2. What all candidates share.
  for (auto [microBatches, program] : {std::pair(1, &programs.whole), {2, &programs.pieces}}) {
    Expected<OwningOpRef<ModuleOp>> made = toPrecision(*compilation.module, microBatches);
    HPC_RETURN_IF_ERROR(made.status());
    *program = std::move(*made);
  }
  describe(*programs.whole);
  return Status::success();
}

// ---- the candidates -----------------------------------------------------------------------------

void Search::addRows(int64_t devices) {
  space.devices = devices;
  for (Candidate &candidate : candidatesOf(space)) {
    Row row;
    row.leastMemory = leastMemory(candidate, work);
    row.leastSeconds = leastSeconds(candidate, work, machine);
    row.candidate = std::move(candidate);
    rows.push_back(std::move(row));
  }
}

/// Candidates that share their program up to phase partition follow each other in one thread, and keep it no longer.
void Search::compileRows(ArrayRef<Row *> batch) {
  auto shares = [](const Candidate &a, const Candidate &b) {
    return std::tie(a.dp, a.cp, a.tp, a.layout, a.cpMode, a.microBatches, a.zero) == std::tie(b.dp, b.cp, b.tp, b.layout, b.cpMode, b.microBatches, b.zero);
  };
  SmallVector<SmallVector<Row *>> groups;
  for (Row *row : batch) {
    auto group = llvm::find_if(groups, [&](auto &each) { return shares(each.front()->candidate, row->candidate); });
    if (group == groups.end())
      groups.push_back({row});
    else
      group->push_back(row);
  }
  context.enableMultithreading();
  mlir::parallelFor(&context, 0, groups.size(), [&](size_t number) {
    Trials trials(programs.of(groups[number].front()->candidate));
    StagedTrials staged;
    for (Row *row : groups[number]) {
      row->tried = true;
      if (Expected<Trial> trial = trials.run(row->candidate.options(space.options), staged); trial.ok())
        row->trial = std::move(*trial);
    }
  });
  context.disableMultithreading();
}

void Search::compileBest() {
  std::vector<Row *> open;
  for (Row &row : rows)
    if (space.options.memory && row.leastMemory > space.options.memory)
      ++tooLarge;
    else
      open.push_back(&row);
  compileRows(open);
}

// ---- the answer ---------------------------------------------------------------------------------

static Ranked rankedOf(const Row &row, size_t number) {
  Ranked ranked;
  ranked.number = number;
  ranked.candidate = row.candidate;
  ranked.seconds = row.trial->seconds;
  ranked.memory = row.trial->peak();
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
  answer.machine = machine.name;
  answer.candidates = rows.size();
  answer.tooLarge = tooLarge;
  answer.leastSeconds = std::numeric_limits<double>::infinity();
  for (auto [number, row] : llvm::enumerate(rows)) {
    answer.leastSeconds = std::min(answer.leastSeconds, row.leastSeconds);
    answer.compiled += row.tried;
    answer.refused += row.tried && !row.trial;
    if (row.trial && row.trial->fits.ok())
      answer.best.push_back(rankedOf(row, number));
  }
  llvm::sort(answer.best, [](const Ranked &a, const Ranked &b) { return std::tie(a.seconds, a.number) < std::tie(b.seconds, b.number); });
  if (answer.best.size() > question.listed)
    answer.best.resize(question.listed);
  return answer;
}

Expected<Answer> Search::run() {
  HPC_RETURN_IF_ERROR(load());
  addRows(space.devices);
  compileBest();
  Answer found = answer();
  if (found.best.empty())
    return Status::error(ErrorKind::Capacity, "nothing fits");
  const Candidate &winner = found.best.front().candidate;
  found.request = question.request;
  found.request.options = winner.options(question.request.options);
  found.request.degrees = {{"dp", winner.dp}, {"cp", winner.cp}, {"tp", winner.tp}, {"pp", winner.pp}, {"mb", winner.microBatches}};
  found.request.givesLayout = true;
  return found;
}

Expected<Answer> findPlan(const Question &question, MLIRContext &context, DiagnosticPrinter &diagnostics) {
  return Search(question, context, diagnostics).run();
}

} // namespace hpc::search
