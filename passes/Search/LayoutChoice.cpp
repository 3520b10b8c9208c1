// The program is propagated without the free axes, which gives what the other axes cut; then the problem adds the free ones. Where propagation
// makes something else of the weights' rules, values get rules of their own, from the front.
#include "passes/Search/LayoutChoice.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Sidecar/Cuts.h"
#include "compiler/Sidecar/ModuleSidecar.h"
#include "compiler/Sidecar/ParamRules.h"
#include "compiler/Sidecar/TensorRules.h"
#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Phases.h"
#include "passes/Search/Elimination.h"
#include "passes/Search/LayoutGraph.h"
#include "runtime/base/CountText.h"

#include "mlir/Pass/PassManager.h"

#include <cmath>

namespace hpc::search {

using namespace dist;

static constexpr int mostRounds = 6; // of rules for values

namespace {
/// The axes to choose for, and the options of a compilation that leaves them out.
struct FreeAxes {
  std::vector<std::string> names;
  Mesh whole;      ///< with all axes
  Options without; ///< with 1 for each free one
};
} // namespace

static Expected<FreeAxes> freeAxesOf(const Options &options) {
  Expected<Mesh> arranged = arrangeTensorAxis(options.degrees, options.tpLayout);
  HPC_RETURN_IF_ERROR(arranged.status());
  FreeAxes axes{{}, *arranged, options};
  int64_t free = 1;
  SmallVector<std::string> sizes; // of a layout's own axes
  for (const Mesh::Axis &axis : arranged->axes) {
    const bool isFree = axis.role == AxisRole::Tensor && axis.size > 1;
    if (isFree) {
      axes.names.push_back(axis.name);
      free *= axis.size;
    }
    if (degreesOf().index(axis.name) < 0)
      sizes.push_back(std::to_string(isFree ? 1 : axis.size));
  }
  if (axes.names.empty())
    return Status::error(ErrorKind::Usage, "no axis of more than one rank cuts weights; give --tp");
  for (Mesh::Axis &axis : axes.without.degrees.axes)
    if (axis.role == AxisRole::Tensor)
      axis.size /= free;
  if (!sizes.empty())
    axes.without.tpLayout = StringRef(options.tpLayout).split(':').first.str() + ":" + llvm::join(sizes, "x");
  axes.without.sp = false;
  return axes;
}

/// The program after phase propagate.
static Expected<OwningOpRef<ModuleOp>> propagated(ModuleOp program, const Options &options, const Sidecar *sidecar) {
  OwningOpRef<ModuleOp> copy = program.clone();
  if (sidecar) {
    setSidecar(*copy, "the search's layout", sidecarText(*sidecar));
    if (!program->hasAttr(sidecarTensorsAttrName))
      noteTensors(*copy, *sidecar);
  }
  std::string text;
  ScopedDiagnosticHandler first(program.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && text.empty())
      text = diagnostic.str();
    return success();
  });
  if (failed(runPhases(*copy, options, "propagate", [](StringRef) { return success(); }, [](PassManager &passes) { passes.enableVerifier(false); })))
    return Status::error(ErrorKind::Sidecar, text);
  return copy;
}

static func::FuncOp mainOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("main"); }

/// The parameters that the program's sidecar decides about, cut over the free axes.
static Expected<std::map<std::string, Sharding>> decidedBy(const std::optional<Sidecar> &own, func::FuncOp function, const FreeAxes &axes) {
  std::map<std::string, Sharding> decided;
  if (!own)
    return decided;
  Expected<std::vector<ParamDecision>> decisions = decideParams(*own, function);
  HPC_RETURN_IF_ERROR(decisions.status());
  for (ParamDecision &decision : *decisions) {
    if (!decision.cut || decision.cut->inferred)
      continue;
    Expected<Sharding> sharding = resolveCuts(decision.cut->shard, nn::shapeOf(decision.parameter.getResult()).vec(), decision.isTransposed,
                                              axes.whole, own->place(*decision.cut));
    HPC_RETURN_IF_ERROR(sharding.status());
    decided[decision.parameter.getName().str()] = normalize(*sharding, axes.whole);
  }
  return decided;
}

/// The cuts over free axes alone.
static Sharding overFree(Sharding sharding, const FreeAxes &axes) {
  for (DimSharding &dim : sharding.dims)
    for (SubDim &sub : dim)
      llvm::erase_if(sub.axes, [&](const std::string &axis) { return !llvm::is_contained(axes.names, axis); });
  sharding.partial.clear();
  return normalize(sharding, axes.whole);
}

// ---- the sidecar --------------------------------------------------------------------------------

/// The program's own rules, then those of the solution for parameters, and for inputs that it cuts.
static Sidecar sidecarOf(const LayoutGraph &graph, const std::vector<size_t> &chosen, const std::optional<Sidecar> &own,
                         const std::map<std::string, Sharding> &decided, const Options &options, const FreeAxes &axes) {
  Sidecar sidecar = own.value_or(Sidecar());
  sidecar.mesh.clear();
  for (const Mesh::Axis &axis : axes.whole.axes)
    sidecar.mesh[axis.name] = axis.size;
  if (!(axes.whole == options.degrees))
    sidecar.layout = StringRef(options.tpLayout).split(':').first.str();
  std::set<std::string> written;
  for (const LayoutGraph::SourceChoice &source : graph.sources()) {
    Sharding cut = overFree(source.strategies[chosen[source.variable]], axes);
    if (auto parameter = source.value.getDefiningOp<nn::ParameterOp>()) {
      std::string name = parameter.getName().str();
      if (decided.count(name) || !written.insert(name).second)
        continue;
      ParamRule rule;
      rule.match = patternFor(name);
      rule.shard = cutsOf(cut);
      sidecar.params.push_back(std::move(rule));
      continue;
    }
    auto argument = cast<BlockArgument>(source.value);
    nn::ArgumentPort port = nn::argumentPort(cast<func::FuncOp>(argument.getOwner()->getParentOp()), argument.getArgNumber());
    if (port.isState() || port.name.empty() || isReplicated(cut))
      continue;
    TensorRule rule;
    rule.match = patternFor(port.name);
    rule.shard = cutsOf(cut);
    sidecar.tensors.push_back(std::move(rule));
  }
  return sidecar;
}

// ---- what the compilation makes of it -----------------------------------------------------------

namespace {
struct Realized {
  std::vector<size_t> chosen;
  double seconds = 0;
  std::vector<size_t> others; ///< ops whose strategy is another one than the solution's
};
} // namespace

/// The strategies that a propagated program has; nullopt where an op or source has none of those in the problem.
static std::optional<Realized> realize(const LayoutGraph &graph, const std::vector<size_t> &solution, func::FuncOp function, const Mesh &mesh) {
  Realized realized{solution, 0, {}};
  SmallVector<Operation *> ops;
  for (Operation &op : function.front())
    if (isa<ShardingRuleOpInterface>(op) && !isa<ReshardOp>(op))
      ops.push_back(&op);
  if (ops.size() != graph.ops().size())
    return std::nullopt;
  auto textOf = [&](const OpSharding &sharding) {
    std::string text = llvm::join(sharding.passing, ",");
    for (const DimSharding &factor : sharding.factors)
      text += "|" + toString(normalize(factor, mesh));
    return text;
  };
  for (auto [number, choice] : llvm::enumerate(graph.ops())) {
    OpSharding has{choice.strategies.front().rule, *factorsOf(ops[number]), {}, -1};
    has.setPassing(ops[number]);
    auto found = llvm::find_if(choice.strategies, [&](const OpSharding &each) { return textOf(each) == textOf(has); });
    if (found == choice.strategies.end())
      return std::nullopt;
    size_t strategy = size_t(found - choice.strategies.begin());
    if (strategy != solution[choice.variable])
      realized.others.push_back(number);
    realized.chosen[choice.variable] = strategy;
  }
  SmallVector<Value> values(function.getArguments());
  for (nn::ParameterOp parameter : function.front().getOps<nn::ParameterOp>())
    values.push_back(parameter.getResult());
  for (auto [choice, value] : llvm::zip_equal(graph.sources(), values)) {
    auto found = llvm::find_if(choice.strategies, [&, &value = value](const Sharding &each) { return normalize(each, mesh) == normalize(shardingOf(value), mesh); });
    if (found == choice.strategies.end())
      return std::nullopt;
    realized.chosen[choice.variable] = size_t(found - choice.strategies.begin());
  }
  graph.chooseForms(realized.chosen);
  realized.seconds = graph.problem().secondsOf(realized.chosen);
  return realized;
}

/// Rules for the values of ops that are the first to differ from the solution; whether there was one to add.
static bool addRules(const LayoutGraph &graph, const std::vector<size_t> &solution, const Realized &realized, ModuleOp program, const FreeAxes &axes,
                     Sidecar &sidecar) {
  auto noted = program->getAttrOfType<DictionaryAttr>(sidecarTensorsAttrName);
  llvm::DenseMap<Value, std::string> names = tensorNames(mainOf(program));
  SmallVector<Operation *> ops;
  for (Operation &op : mainOf(program).front())
    if (isa<ShardingRuleOpInterface>(op))
      ops.push_back(&op);
  llvm::DenseSet<Operation *> differs;
  for (size_t number : realized.others)
    differs.insert(graph.ops()[number].op);
  bool isNew = false;
  for (size_t number : realized.others) {
    const LayoutGraph::OpChoice &choice = graph.ops()[number];
    if (number >= ops.size() || ops[number]->getName() != choice.op->getName()) // annotate has put ops between
      return false;
    if (llvm::any_of(choice.op->getOperands(), [&](Value operand) { return differs.contains(operand.getDefiningOp()); }))
      continue;
    auto name = names.find(ops[number]->getNumResults() == 1 ? ops[number]->getResult(0) : Value());
    Sharding cut = overFree(choice.strategies[solution[choice.variable]].result(0, axes.whole), axes);
    if (name == names.end() || isReplicated(cut))
      continue;
    std::optional<Sharding> given = cut;
    if (auto shape = noted ? noted.getAs<DenseI64ArrayAttr>(name->second) : DenseI64ArrayAttr())
      given = reshapedCuts(cut, std::vector<int64_t>(shape.asArrayRef()), axes.whole);
    TensorRule rule;
    rule.match = patternFor(name->second);
    if (!given || llvm::any_of(sidecar.tensors, [&](const TensorRule &each) { return each.match == rule.match; }))
      continue;
    rule.shard = cutsOf(*given);
    sidecar.tensors.push_back(std::move(rule));
    isNew = true;
  }
  return isNew;
}

// ---- reasons ------------------------------------------------------------------------------------

std::string WeightReason::text() const {
  std::string text = weights.front();
  if (weights.size() > 1)
    text += " and " + countText(int64_t(weights.size()) - 1, "more weight");
  text += (weights.size() > 1 ? " are " : " is ") + cut + ": ";
  if (nextCut.empty())
    return text + "nothing else is possible";
  char number[32];
  std::snprintf(number, sizeof number, "%.3g us", more * 1e6);
  return text + nextCut + " would take " + number + " more of a step";
}

static std::vector<WeightReason> reasonsFor(const LayoutGraph &graph, const LayoutProblem::Solution &solution) {
  std::map<LayoutProblem::Variable, WeightReason> byClass;
  for (const LayoutGraph::SourceChoice &source : graph.sources()) {
    auto parameter = source.value.getDefiningOp<nn::ParameterOp>();
    if (!parameter || nn::shapeOf(source.value).size() < 2)
      continue;
    auto [entry, isNew] = byClass.try_emplace(graph.problem().first(source.variable));
    entry->second.weights.push_back(parameter.getName().str());
    if (!isNew)
      continue;
    const size_t taken = solution.chosen[source.variable];
    entry->second.cut = toString(source.strategies[taken]);
    entry->second.more = impossible;
    for (size_t other = 0; other < source.strategies.size(); ++other) {
      if (other == taken)
        continue;
      Expected<double> seconds = secondsWith(graph.problem(), source.variable, other);
      if (seconds.ok() && *seconds - solution.seconds < entry->second.more) {
        entry->second.more = *seconds - solution.seconds;
        entry->second.nextCut = toString(source.strategies[other]);
      }
    }
  }
  std::vector<WeightReason> reasons;
  for (auto &[variable, reason] : byClass)
    reasons.push_back(std::move(reason));
  return reasons;
}

// ---- the choice ---------------------------------------------------------------------------------

Expected<LayoutChoice> chooseLayout(ModuleOp program, const Options &options, const cost::Machine &machine, bool explains) {
  // 1. What the other axes cut.
  Expected<FreeAxes> axes = freeAxesOf(options);
  HPC_RETURN_IF_ERROR(axes.status());
  Expected<OwningOpRef<ModuleOp>> base = propagated(program, axes->without, nullptr);
  HPC_RETURN_IF_ERROR(base.status());
  Mesh mesh = meshOf(**base);
  for (Mesh::Axis &axis : mesh.axes)
    axis.size = axes->whole.size(axis.name);
  axes->whole = mesh;
  // 2. The problem and its solution.
  Expected<std::optional<Sidecar>> own = hpc::sidecarOf(program);
  HPC_RETURN_IF_ERROR(own.status());
  Expected<std::map<std::string, Sharding>> decided = decidedBy(*own, mainOf(program), *axes);
  HPC_RETURN_IF_ERROR(decided.status());
  LayoutCosts costs(mesh, machine);
  LayoutGraph graph(mainOf(**base), costs, axes->names, *decided);
  Expected<LayoutProblem::Solution> solution = solveByElimination(graph.problem());
  HPC_RETURN_IF_ERROR(solution.status());
  HPC_RETURN_IF_ERROR(graph.problem().verify(*solution));
  // 3. The sidecar, and rules for values as long as they bring the compilation closer to the solution.
  LayoutChoice choice;
  choice.bound = solution->seconds;
  choice.seconds = impossible;
  Sidecar sidecar = sidecarOf(graph, solution->chosen, *own, *decided, options, *axes);
  for (int round = 0; round < mostRounds; ++round) {
    Expected<OwningOpRef<ModuleOp>> made = propagated(program, options, &sidecar);
    if (!made.ok()) {
      if (round == 0)
        return made.status();
      break; // a rule that no op can follow: the round before has the choice
    }
    std::optional<Realized> realized = realize(graph, solution->chosen, mainOf(**made), mesh);
    if (realized && realized->seconds < choice.seconds) {
      choice.sidecar = sidecar;
      choice.seconds = realized->seconds;
      choice.collectives = graph.collectives(realized->chosen);
    }
    if (!realized || realized->seconds <= choice.bound * (1 + 1e-9) || !addRules(graph, solution->chosen, *realized, program, *axes, sidecar))
      break;
  }
  if (choice.seconds == impossible)
    choice.sidecar = std::move(sidecar);
  if (explains)
    choice.reasons = reasonsFor(graph, *solution);
  return choice;
}

} // namespace hpc::search
