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
#include "compiler/Interfaces/Structure.h"
#include "compiler/StepPart.h"
#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Phases.h"
#include "passes/Search/Elimination.h"
#include "passes/Search/LayoutGraph.h"
#include "passes/Search/LayoutPrice.h"
#include "runtime/base/CountText.h"

#include "mlir/Pass/PassManager.h"

#include <cmath>

namespace hpc::search {

using namespace dist;

static constexpr int mostRounds = 8; // of rules for values

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

/// Whether a product or a lookup reads the parameter, perhaps after ops on weights alone. Layouts decide about these; all others follow.
static bool isWeight(Value value, const nn::Dependences &dependences) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (stepPartOf(user->getLoc()) != StepPart::Forward || user->getNumResults() == 0)
      return false;
    if (dependences.lookup(user->getResult(0)).isWeight())
      return isWeight(user->getResult(0), dependences);
    return effortOf(user) == Effort::Product || accessOf(user) == Access::Lookup;
  });
}

/// The program's own rules, then those of the solution for weights, and for inputs that it cuts.
static Sidecar sidecarOf(const LayoutGraph &graph, func::FuncOp function, const std::vector<size_t> &chosen, const std::optional<Sidecar> &own,
                         const std::map<std::string, Sharding> &decided, const Options &options, const FreeAxes &axes) {
  Sidecar sidecar = own.value_or(Sidecar());
  sidecar.mesh.clear();
  for (const Mesh::Axis &axis : axes.whole.axes)
    sidecar.mesh[axis.name] = axis.size;
  if (!(axes.whole == options.degrees))
    sidecar.layout = StringRef(options.tpLayout).split(':').first.str();
  std::set<std::string> written;
  nn::Dependences dependences = nn::findDependences(function);
  for (const LayoutGraph::SourceChoice &source : graph.sources()) {
    Sharding cut = overFree(source.strategies[chosen[source.variable]], axes);
    if (auto parameter = source.value.getDefiningOp<nn::ParameterOp>()) {
      std::string name = parameter.getName().str();
      if (decided.count(name) || !isWeight(source.value, dependences) || !written.insert(name).second)
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

static SmallVector<Operation *> ruledOps(func::FuncOp function) {
  SmallVector<Operation *> ops;
  for (Operation &op : function.front())
    if (isa<ShardingRuleOpInterface>(op) && !isa<ReshardOp>(op) && stepPartOf(op.getLoc()) == StepPart::Forward)
      ops.push_back(&op);
  return ops;
}

/// Ops of the problem whose strategy in a propagated program is another one than the solution's.
static std::vector<size_t> othersIn(func::FuncOp made, const LayoutGraph &graph, const std::vector<size_t> &solution, const Mesh &mesh) {
  std::vector<size_t> others;
  SmallVector<Operation *> ops = ruledOps(made);
  auto textOf = [&](const OpSharding &sharding) {
    std::string text = llvm::join(sharding.passing, ",");
    for (const DimSharding &factor : sharding.factors)
      text += "|" + toString(normalize(factor, mesh));
    return text;
  };
  for (auto [number, choice] : llvm::enumerate(graph.ops())) {
    if (number >= ops.size() || ops[number]->getName() != choice.op->getName())
      return {};
    const OpSharding &wanted = choice.strategies[solution[choice.variable]];
    OpSharding has{wanted.rule, *factorsOf(ops[number]), {}, -1};
    has.setPassing(ops[number]);
    if (textOf(has) != textOf(wanted))
      others.push_back(number);
  }
  return others;
}

/// Rules for values, where the compilation first leaves the solution: those that the op's result is cut by, or that a value is whole for its
/// readers. What follows from them needs none. Whether there was one to add.
static bool addRules(const LayoutGraph &graph, const std::vector<size_t> &solution, ArrayRef<size_t> others, ModuleOp program, func::FuncOp made,
                     const FreeAxes &axes, Sidecar &sidecar) {
  auto noted = program->getAttrOfType<DictionaryAttr>(sidecarTensorsAttrName);
  llvm::DenseMap<Value, std::string> names = tensorNames(mainOf(program));
  SmallVector<Operation *> ops = ruledOps(mainOf(program)), madeOps = ruledOps(made);
  if (ops.size() != madeOps.size()) // annotate has put ops between
    return false;
  const size_t before = sidecar.tensors.size();
  auto add = [&](Value value, const Sharding &cut) {
    auto name = names.find(value);
    if (name == names.end())
      return false;
    std::optional<Sharding> given = cut;
    if (auto shape = noted ? noted.getAs<DenseI64ArrayAttr>(name->second) : DenseI64ArrayAttr())
      given = reshapedCuts(cut, shape.asArrayRef().vec(), axes.whole);
    TensorRule rule;
    rule.match = patternFor(name->second);
    if (!given || llvm::any_of(sidecar.tensors, [&](const TensorRule &each) { return each.match == rule.match; }))
      return false;
    rule.shard = cutsOf(*given);
    sidecar.tensors.push_back(std::move(rule));
    return true;
  };
  llvm::DenseSet<Operation *> follows;                    // of the program
  std::set<LayoutProblem::Variable> decidedAlike; // ops of other blocks are decided as their first
  for (size_t number : others) {
    const LayoutGraph::OpChoice &choice = graph.ops()[number];
    Operation *op = ops[number];
    const LayoutProblem::Variable first = graph.problem().first(choice.variable);
    bool isDecided = !decidedAlike.count(first) && llvm::any_of(op->getOperands(), [&](Value operand) { return follows.contains(operand.getDefiningOp()); });
    const size_t rules = sidecar.tensors.size();
    const OpSharding &wanted = choice.strategies[solution[choice.variable]];
    if (Sharding cut = overFree(wanted.result(0, axes.whole), axes); !isDecided && op->getNumResults() == 1 && !isReplicated(cut))
      isDecided = add(op->getResult(0), cut);
    else if (!isDecided)
      for (OpOperand &operand : op->getOpOperands())
        if (Sharding whole = overFree(wanted.operand(operand.getOperandNumber(), axes.whole), axes);
            isReplicated(whole) && !isReplicated(overFree(shardingOf(madeOps[number]->getOperand(operand.getOperandNumber())), axes)))
          isDecided |= add(operand.get(), whole);
    if (isDecided)
      follows.insert(op);
    if (sidecar.tensors.size() > rules)
      decidedAlike.insert(first);
  }
  return sidecar.tensors.size() > before;
}

// ---- reasons ------------------------------------------------------------------------------------

std::string WeightReason::text() const {
  std::string text = weights.front();
  if (weights.size() > 1)
    text += " and " + countText(int64_t(weights.size()) - 1, "more weight");
  text += (weights.size() > 1 ? " are " : " is ") + cut + ": ";
  if (nextCut.empty())
    return text + "nothing else is possible";
  if (more < 1e-12)
    return text + nextCut + " takes as long";
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

void noteShapes(ModuleOp imported) {
  Sidecar all;
  all.tensors.emplace_back();
  all.tensors.back().match = "*";
  noteTensors(imported, all);
}

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
  if (options.memory > 0) // weights and states alone; a plan's peak is place's number
    graph.setCapacity(options.memory * options.stages());
  Expected<LayoutProblem::Solution> solution = solveByElimination(graph.problem());
  HPC_RETURN_IF_ERROR(solution.status());
  HPC_RETURN_IF_ERROR(graph.problem().verify(*solution));
  // 3. The sidecar, and rules for values as long as there are some to add. The layout's own seeds are one more choice.
  LayoutChoice choice;
  choice.solution = solution->seconds;
  choice.predicted = graph.collectives(solution->chosen);
  choice.seconds = impossible;
  Sidecar sidecar = sidecarOf(graph, mainOf(**base), solution->chosen, *own, *decided, options, *axes);
  auto weigh = [&](ModuleOp made, const Sidecar &rules) {
    Expected<LayoutPrice> price = priceOf(made, costs);
    if (!price.ok() || price->seconds >= choice.seconds)
      return price.status();
    choice.sidecar = rules;
    choice.seconds = price->seconds;
    choice.collectives = std::move(price->collectives);
    return Status::success();
  };
  for (int round = 0; round < mostRounds; ++round) {
    Expected<OwningOpRef<ModuleOp>> made = propagated(program, options, &sidecar);
    if (!made.ok()) {
      if (round == 0)
        return made.status();
      break; // an op cannot follow a rule for a value: the rounds before have the choice
    }
    std::vector<size_t> others = othersIn(mainOf(**made), graph, solution->chosen, mesh);
    const Sidecar rules = sidecar;
    const bool isDone = others.empty() || !addRules(graph, solution->chosen, others, program, mainOf(**made), *axes, sidecar);
    HPC_RETURN_IF_ERROR(weigh(**made, rules));
    if (isDone)
      break;
  }
  if (Expected<OwningOpRef<ModuleOp>> made = propagated(program, options, nullptr); made.ok()) {
    Sidecar rules = own->value_or(Sidecar());
    rules.mesh = sidecar.mesh;
    rules.layout = sidecar.layout;
    HPC_RETURN_IF_ERROR(weigh(**made, rules));
  }
  if (explains)
    choice.reasons = reasonsFor(graph, *solution);
  choice.problem = graph.problem();
  return choice;
}

} // namespace hpc::search
