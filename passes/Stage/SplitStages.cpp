// Moves every op of @main into the program that computes it (StepParts.h). A value that another program reads passes
// through every part between, so that only neighbours exchange messages: forward through the forward programs, backward
// through the backward ones. Values that updates read from each other are sent directly (StepUpdates.h).
#include "passes/Stage/Blocks.h"
#include "passes/Stage/Passes.h"
#include "passes/Stage/ProgramBody.h"
#include "passes/Stage/ScheduleChoice.h"
#include "passes/Stage/StageRules.h"
#include "passes/Stage/StepUpdates.h"

#include "compiler/BlockMark.h"
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Location.h"
#include "compiler/Sidecar/ModuleSidecar.h"

namespace hpc {

#define GEN_PASS_DEF_SPLITSTAGES
#include "passes/Stage/Passes.h.inc"

namespace {
using Program = StepParts::Program;

/// Builds the programs of one function in the order in which a micro-batch runs them, then the updates.
class ProgramBuilder {
public:
  ProgramBuilder(func::FuncOp function, const Trunk &trunk, StepParts &parts)
      : function(function), parts(parts), own(parts.numPrograms()), wanted(parts.numPrograms()),
        leaving(parts.numPrograms()), repeated(parts.numPrograms()) {
    for (const std::vector<Operation *> *ops : {&trunk.ops, &trunk.later})
      for (Operation *op : *ops)
        if (std::optional<Program> program = parts.programOf(op))
          own[*program].push_back(op);
  }

  LogicalResult build(OpBuilder &builder) {
    llvm::DenseMap<Operation *, Homes> homes = placeUpdates(function, parts);
    findReturned();
    StepUpdates updates(function, parts, std::move(homes), findReads());
    Operation *terminator = function.getBody().front().getTerminator();
    for (Program program = 0; program < parts.numPrograms(); ++program) {
      for (Value value : updates.wantedOf(program))
        want(program, value);
      for (OpOperand &returned : terminator->getOpOperands())
        if (!updates.returns(returned) && returner(returned.get()) == program)
          want(program, returned.get());
    }
    findRepeated();
    for (Program program = 0; program < parts.numPrograms(); ++program)
      findRoutes(program);
    builder.setInsertionPoint(terminator);
    for (Program program = 0; program < parts.numPrograms(); ++program)
      buildProgram(builder, program);
    SmallVector<std::pair<OpOperand *, Value>> direct;
    for (OpOperand &returned : terminator->getOpOperands())
      if (!updates.returns(returned))
        direct.push_back({&returned, results.lookup({returned.get(), returner(returned.get())})});
    for (auto [returned, result] : direct)
      returned->set(result);
    return updates.build(builder, known);
  }

private:
  /// The program that returns a value: the one that computes it; for a value cheap to repeat, the first.
  Program returner(Value value) const { return parts.programOf(value).value_or(0); }

  void want(Program program, Value value) { wanted[program].insert(value); }

  void findReturned() {
    if (parts.hasUpdates())
      return;
    for (Value value : function.getBody().front().getTerminator()->getOperands())
      want(returner(value), value);
  }

  ProgramBody bodyOf(Program program) const {
    return findBody(own[program], wanted[program].getArrayRef(), [&](Value value) {
      std::optional<Program> maker = parts.programOf(value);
      return maker && *maker != program && !repeated[program].contains(value);
    });
  }

  /// Parameters and states, and the stages whose programs read them.
  std::map<std::string, std::set<unsigned>> findReads() const {
    std::map<std::string, std::set<unsigned>> reads;
    for (Program program = 0; program < parts.numPrograms(); ++program) {
      ProgramBody body = bodyOf(program);
      unsigned stage = unsigned(parts.stageOf(program));
      for (Operation *op : body.ops)
        if (auto parameter = dyn_cast<nn::ParameterOp>(op))
          reads[parameter.getName().str()].insert(stage);
      for (Value value : body.outside)
        if (auto argument = dyn_cast<BlockArgument>(value))
          if (std::string state = nn::argumentPort(function, argument.getArgNumber()).state; !state.empty())
            reads[state].insert(stage);
    }
    return reads;
  }

  /// The program after `at` on a value's way to `target`: within a part straight, to later parts by the forward
  /// programs, to earlier ones by the backward ones.
  Program next(Program at, Program target) const {
    size_t here = parts.partOf(at), there = parts.partOf(target);
    if (here == there)
      return target;
    if (here < there)
      return parts.forward(here + 1);
    return at == parts.forward(here) ? parts.backward(here) : parts.backward(here - 1);
  }

  /// The programs on a value's way from the one that makes it to `target`, both included.
  SmallVector<Program> wayOf(Value value, Program target) const {
    SmallVector<Program> way{*parts.programOf(value)};
    while (way.back() != target)
      way.push_back(next(way.back(), target));
    return way;
  }

  /// Finds copies in another type, and views, that do not travel with their source: programs that have it repeat them.
  void findRepeated() {
    std::vector<llvm::SetVector<Value>> arriving(parts.numPrograms());
    for (Program target = 0; target < parts.numPrograms(); ++target)
      for (Value value : bodyOf(target).outside)
        if (parts.programOf(value)) {
          SmallVector<Program> way = wayOf(value, target);
          for (Program at : llvm::drop_begin(way))
            arriving[at].insert(value);
        }
    for (Program program = 0; program < parts.numPrograms(); ++program)
      for (Value value : arriving[program]) {
        SmallVector<Value> copies;
        Value source = value;
        while (isCopy(source.getDefiningOp()) && parts.partOf(*parts.programOf(source)) != parts.partOf(program)) {
          copies.push_back(source);
          source = source.getDefiningOp()->getOperand(0);
          if (arriving[program].contains(source))
            repeated[program].insert(copies.begin(), copies.end());
          if (!parts.programOf(source))
            break;
        }
      }
  }

  /// A value comes from the last program on its way that makes it.
  void findRoutes(Program target) {
    for (Value value : bodyOf(target).outside) {
      if (!parts.programOf(value))
        continue;
      SmallVector<Program> way = wayOf(value, target);
      size_t from = way.size() - 1;
      while (from > 0 && !repeated[way[from]].contains(value))
        --from;
      if (from > 0)
        want(way[from], value);
      for (size_t i = from; i + 1 < way.size(); ++i)
        leaving[way[i]].insert({value, way[i + 1]});
    }
  }

  /// Drops copies that nobody reads here, because other programs repeat them.
  static void dropUnread(ProgramBody &body, const llvm::SetVector<Value> &yields) {
    llvm::DenseSet<Value> read(yields.begin(), yields.end());
    SmallVector<Operation *> kept;
    for (Operation *op : llvm::reverse(body.ops)) {
      if (isCopy(op) && !read.contains(op->getResult(0)))
        continue;
      read.insert(op->operand_begin(), op->operand_end());
      kept.push_back(op);
    }
    body.ops.assign(kept.rbegin(), kept.rend());
  }

  void buildProgram(OpBuilder &builder, Program program) {
    ProgramBody body = bodyOf(program);
    llvm::SetVector<Value> yields(wanted[program].begin(), wanted[program].end());
    for (auto [value, to] : leaving[program]) {
      yields.insert(value);
      if (parts.programOf(value) != program && !repeated[program].contains(value))
        body.outside.insert(value); // it passes through
    }
    dropUnread(body, yields);
    if (body.ops.empty() && yields.empty())
      return;
    SmallVector<Value> operands;
    for (Value value : body.outside)
      operands.push_back(isa<BlockArgument>(value) ? value : arrived.lookup({value, program}));
    Location place = yields.empty() ? function.getLoc() : yields.front().getLoc();
    size_t part = parts.partOf(program);
    pipe::StageOp stage = createProgram(builder, place, parts.stageOf(program), part / parts.numStages(),
                                        parts.kindOf(program), body, operands, yields.getArrayRef());
    for (auto [value, result] : llvm::zip(yields, stage.getResults())) {
      results[{value, program}] = result;
      if (wanted[program].contains(value))
        known[{value, unsigned(parts.stageOf(program))}] = result;
    }
    for (auto [value, to] : leaving[program]) {
      Value result = results.lookup({value, program});
      bool crosses = parts.stageOf(program) != parts.stageOf(to);
      arrived[{value, to}] = crosses ? transfer(builder, value, result, program, to) : result;
    }
  }

  Value transfer(OpBuilder &builder, Value value, Value result, Program program, Program to) {
    size_t from = parts.stageOf(program), target = parts.stageOf(to), source = parts.stageOf(*parts.programOf(value));
    std::string cause = "pipeline stage " + std::to_string(target) + " reads what stage " + std::to_string(source) +
                        " computes" + (source == from ? "" : "; it comes through stage " + std::to_string(from));
    auto transfer =
        pipe::TransferOp::create(builder, value.getLoc(), value.getType(), result, from, target,
                                 builder.getStringAttr(cause), builder.getStringAttr("fewer stages (--pp)"));
    setValueIds(transfer, {{}, valueIdsOf(value.getDefiningOp()).made}); // the value that --verify expects on arrival
    return transfer;
  }

  func::FuncOp function;
  StepParts &parts;
  std::vector<SmallVector<Operation *>> own;                         ///< by program
  std::vector<llvm::SetVector<Value>> wanted;                        ///< by program: the values for updates and returns
  std::vector<llvm::SetVector<std::pair<Value, Program>>> leaving;   ///< by program: values, and the next on their way
  std::vector<llvm::DenseSet<Value>> repeated;                       ///< by program: copies that it makes of arrivals
  llvm::DenseMap<std::pair<Value, Program>, Value> arrived, results; ///< by taking program; by yielding program
  llvm::DenseMap<StepUpdates::Known, Value> known;                   ///< by stage, for its update
};

/// An op that depends on a sum over micro-batches runs once a step, where values of single micro-batches are gone.
static LogicalResult checkOnceAStep(func::FuncOp function, const StepParts &parts) {
  dist::Mesh mesh = dist::meshOf(function);
  if (mesh.sizeOf(dist::AxisRole::Time) == 1)
    return success();
  for (Operation &op : function.getBody().front())
    if (parts.isOnceAStep(&op))
      for (Value operand : op.getOperands())
        if (dist::shardingAttrOf(operand) && dist::isPerMicroBatch(dist::shardingOf(operand), mesh))
          return userError(&op, ErrorKind::Unsupported)
                 << describeOp(&op) << " reads a sum over all micro-batches or belongs to the update, which run once a "
                 << "step, and "
                 << (operand.getDefiningOp() ? "what " + describeOp(operand.getDefiningOp()) + " makes"
                                             : std::string("an input"))
                 << ", of which each micro-batch has its own; use --micro-batches=1";
  return success();
}

struct SplitStages : impl::SplitStagesBase<SplitStages> {
  using SplitStagesBase::SplitStagesBase;

  /// How many blocks every part gets. Rules of stages in the sidecar replace `blocks` by the blocks that they make.
  std::optional<std::vector<size_t>> chooseCounts(func::FuncOp function, Blocks &blocks) {
    Expected<std::optional<Sidecar>> sidecar = sidecarOf(getOperation());
    if (sidecar.ok() && (!*sidecar || (*sidecar)->stages.empty() || stages < 1 || chunks < 1))
      return chooseSplit(function, blocks, stages, chunks, split);
    Status status = sidecar.status();
    if (status.ok() && split != "balanced")
      status = Status::error(ErrorKind::Usage, "--pp-split=" + split + " and the rules of \"stages\" in " +
                                                   (*sidecar)->file + " both cut the program; leave one of them out");
    if (status.ok()) {
      Expected<Blocks> cut = cutByRules(function, blocks, stages, chunks, **sidecar);
      if (cut.ok()) {
        blocks = *cut;
        return std::vector<size_t>(blocks.size(), 1);
      }
      status = cut.status();
    }
    userError(function, status.kind()) << status.message();
    return std::nullopt;
  }

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    // 1. Where the program may be cut, and which cuts to take.
    Blocks blocks = findBlocks(function, size_t(std::max<int64_t>(stages, 1) * std::max<int64_t>(chunks, 1)));
    std::optional<std::vector<size_t>> counts = chooseCounts(function, blocks);
    if (!counts)
      return signalPassFailure();
    Expected<BackwardPrograms> backward = backwardPrograms(schedule, counts->size());
    if (!backward.ok()) {
      userError(function, backward.status().kind()) << "--pp-schedule=" << schedule << ": "
                                                    << backward.status().message();
      return signalPassFailure();
    }
    // 2. Which program runs each op. Gradients of several parts are added up once a step.
    StepParts parts(function, blocks, *counts, size_t(stages), *backward);
    if (accumulateByPart(function, parts)) {
      blocks.trunk.later = findTrunk(function).later;
      parts = StepParts(function, blocks, *counts, size_t(stages), *backward);
    }
    if (failed(checkOnceAStep(function, parts)))
      return signalPassFailure();
    if (markBlocks)
      for (size_t block = 0; block < blocks.size(); ++block)
        for (size_t i = blocks.firstOp[block]; i < blocks.endOp(block); ++i)
          setBlockMark(blocks.trunk.ops[i], int64_t(block));
    // 3. Clone every op into its programs.
    OpBuilder builder(&getContext());
    if (failed(ProgramBuilder(function, blocks.trunk, parts).build(builder)))
      return signalPassFailure();
    // 4. Erase the old ops.
    SmallVector<Operation *> old;
    for (Operation &op : function.getBody().front().without_terminator())
      if (!isa<pipe::PipeDialect>(op.getDialect()))
        old.push_back(&op);
    for (Operation *op : llvm::reverse(old))
      op->erase();
  }
};
} // namespace

} // namespace hpc
