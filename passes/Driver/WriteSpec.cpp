// A default layout's seeds become rules with `inferred`, so that they flow as they did; the user's rules stay binding,
// and what they say of training stands before all others, in their own words. What has no seed stands there as propagation left it, so that every parameter's cut is in the file.
#include "passes/Driver/WriteSpec.h"

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/Sidecar/Cuts.h"
#include "compiler/Sidecar/ModuleSidecar.h"
#include "compiler/Sidecar/ParamRules.h"
#include "compiler/StepPart.h"
#include "compiler/ValueNames.h"
#include "passes/Annotate/LayoutStrategy.h"
#include "runtime/plan/ScheduleKinds.h"

namespace hpc {

/// The choices that are not the default. The file of a schedule is the user's own, and stays a flag.
static PlanChoices choicesOf(const Options &options) {
  const Options defaults;
  PlanChoices choices;
  if (options.ppChunks != defaults.ppChunks)
    choices.chunks = options.ppChunks;
  if (options.cpMode != defaults.cpMode)
    choices.cpMode = options.cpMode;
  if (!options.trains())
    return choices;
  if (options.zero != defaults.zero)
    choices.zero = options.zero;
  if (options.ppSchedule != defaults.ppSchedule && plan::parseScheduleKind(options.ppSchedule).ok())
    choices.schedule = options.ppSchedule;
  if (options.recompute == defaults.recompute)
    return choices;
  choices.recompute = options.recompute;
  if (options.recompute == "auto")
    choices.memory = options.memory;
  return choices;
}

Expected<Sidecar> chosenSpec(ModuleOp annotated, const Options &options) {
  Expected<std::optional<Sidecar>> own = sidecarOf(annotated);
  if (!own.ok())
    return own.status();
  auto function = annotated.lookupSymbol<func::FuncOp>("main");
  Sidecar spec;
  Expected<dist::Mesh> arranged = arrangeTensorAxis(options.degrees, options.tpLayout);
  if (!arranged.ok())
    return arranged.status();
  for (const dist::Mesh::Axis &axis : arranged->axes)
    spec.mesh[axis.name] = axis.size;
  if (!(*arranged == options.degrees))
    spec.layout = StringRef(options.tpLayout).split(':').first.str();
  else if (options.sp)
    spec.layout = options.layout();
  spec.plan = choicesOf(options);
  llvm::DenseMap<Operation *, const ParamRule *> userRules;
  if (*own && function) {
    Expected<std::vector<ParamDecision>> decisions = decideParams(**own, function);
    if (!decisions.ok())
      return decisions.status();
    std::set<size_t> training; // rules in their order: a parameter asks them all
    for (ParamDecision &decision : *decisions) {
      if (decision.cut && !decision.cut->inferred)
        userRules[decision.parameter] = decision.cut;
      if (decision.trainable)
        training.insert(size_t(decision.trainable - (*own)->params.data()));
    }
    for (size_t number : training) {
      const ParamRule &user = (*own)->params[number];
      ParamRule rule;
      rule.match = user.match;
      rule.optional = user.optional;
      rule.decidesCut = false;
      rule.trainable = user.trainable;
      spec.params.push_back(std::move(rule));
    }
    spec.tensors = (*own)->tensors;
  }
  if (function)
    for (nn::ParameterOp parameter : function.getOps<nn::ParameterOp>()) {
      std::optional<dist::Seed> seed = dist::seedOf(parameter.getResult());
      if (!seed)
        continue;
      const ParamRule *user = userRules.lookup(parameter);
      ParamRule rule;
      rule.match = patternFor(parameter.getName().str());
      rule.shard = cutsOf(seed->sharding);
      rule.inferred = !user;
      rule.outputReplicate = user && user->outputReplicate;
      spec.params.push_back(std::move(rule));
    }
  return spec;
}

void addPropagatedParams(ModuleOp propagated, Sidecar &sidecar) {
  auto function = propagated.lookupSymbol<func::FuncOp>("main");
  if (!function)
    return;
  std::map<std::string, ParamRule> seeded;
  std::vector<ParamRule> rules;
  for (ParamRule &rule : sidecar.params)
    if (rule.decidesCut)
      seeded.emplace(rule.match, std::move(rule));
    else
      rules.push_back(std::move(rule));
  sidecar.params = std::move(rules);
  std::set<std::string> written; // parts of one tensor are several parameters of its name
  for (nn::ParameterOp parameter : function.getOps<nn::ParameterOp>()) {
    std::string match = patternFor(parameter.getName().str());
    if (!written.insert(match).second)
      continue;
    if (auto found = seeded.find(match); found != seeded.end()) {
      sidecar.params.push_back(std::move(found->second));
      continue;
    }
    ParamRule rule;
    rule.match = match;
    rule.shard = cutsOf(dist::shardingOf(parameter.getResult()));
    rule.inferred = true;
    sidecar.params.push_back(std::move(rule));
  }
}

static std::vector<std::string> stageNames(Operation *op) {
  std::vector<std::string> names;
  for (const std::string &name : {modulePath(op->getLoc()), nodeName(op->getLoc())})
    if (!name.empty())
      names.push_back(name);
  return names;
}

void addStageRules(ModuleOp staged, Sidecar &sidecar) {
  // 1. In which parts a name occurs.
  using Part = std::pair<int64_t, int64_t>; // chunk, stage: the program's order
  std::map<std::string, std::set<Part>> partsOf;
  std::map<Part, std::vector<Operation *>> ops;
  staged.walk([&](pipe::StageOp program) {
    Part part(int64_t(program.getChunk()), int64_t(program.getIndex()));
    for (Operation &op : program.getBody().front()) {
      if (stepPartOf(op.getLoc()) != StepPart::Forward) // it has the names of a forward op, and follows that one
        continue;
      if (nn::isProduct(&op)) // never cheap to repeat, so a rule that names it holds it in its part
        ops[part].push_back(&op);
      for (const std::string &name : stageNames(&op))
        partsOf[name].insert(part);
    }
  });
  if (ops.size() < 2)
    return;
  // 2. The first and the last product of each part whose name occurs in no other.
  for (auto &[part, members] : ops) {
    std::vector<std::string> own;
    for (Operation *op : members)
      for (const std::string &name : stageNames(op))
        if (partsOf[name].size() == 1) {
          own.push_back(name);
          break;
        }
    if (own.empty())
      continue;
    for (const std::string &name : own.front() == own.back() ? std::vector<std::string>{own.front()}
                                                             : std::vector<std::string>{own.front(), own.back()}) {
      StageRule rule;
      rule.match = patternFor(name);
      rule.chunk = part.first;
      rule.stage = part.second;
      sidecar.stages.push_back(std::move(rule));
    }
  }
}

} // namespace hpc
