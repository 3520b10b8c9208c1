// A parameter has many names: its own, those of the initializers that it holds, the modules that read it.
#include "compiler/Sidecar/ParamRules.h"

#include "compiler/Dialect/NN/Parameter.h"

namespace hpc {

namespace {
/// Which rules decided something, over all parameters.
struct RuleUse {
  bool decides = false;
  const ParamRule *before = nullptr; ///< the first that it came too late for, and would have changed
  std::string name, own;             ///< by which it matched that one's parameter, and that parameter's own
  bool agrees = false;               ///< it came too late for all, and says the same
};

/// What asking one parameter takes along.
struct Asked {
  nn::ParameterOp parameter;
  const ParamRule &rule;
  const std::string &name; ///< by which the rule matched
  RuleUse &use;

  /// One of the two questions, which `decided` has answered before or the rule answers now.
  void answer(const ParamRule *&decided, llvm::function_ref<bool(const ParamRule &)> saysTheSame) {
    if (!decided) {
      decided = &rule;
      use.decides = true;
    } else if (saysTheSame(*decided)) {
      use.agrees = true;
    } else if (!use.before) {
      use.before = decided;
      use.name = name;
      use.own = parameter.getName().str();
    }
  }
};
} // namespace

static Status decidesNothing(const Sidecar &sidecar, const ParamRule &rule, const RuleUse &use,
                             const std::vector<std::string> &names) {
  std::string text = "\"" + rule.match + "\" ";
  if (use.before) {
    text += "decides nothing: '" + use.name + "'" +
            (use.own == use.name ? "" : ", which is the parameter '" + use.own + "',") + " is decided by \"" +
            use.before->match + "\" in line " + std::to_string(use.before->line) +
            ", and the first rule that matches wins; move this rule before that one, or take one out";
  } else {
    std::string nearest = nearestMatch(rule.match, names);
    text += "matches no parameter; " +
            (nearest.empty() ? std::string("--list-params lists their names") : "the nearest is '" + nearest + "'");
  }
  return Status::error(ErrorKind::Sidecar, text).at(sidecar.place(rule));
}

Expected<std::vector<ParamDecision>> decideParams(const Sidecar &sidecar, func::FuncOp function) {
  std::vector<ParamDecision> decisions;
  std::vector<RuleUse> uses(sidecar.params.size());
  std::vector<std::string> allNames;
  for (nn::ParameterOp parameter : function.getOps<nn::ParameterOp>()) {
    std::vector<std::string> names = namesOf(parameter);
    allNames.insert(allNames.end(), names.begin(), names.end());
    ParamDecision decision{parameter};
    for (auto asking : llvm::zip_equal(sidecar.params, uses)) {
      auto &rule = std::get<0>(asking);
      auto &use = std::get<1>(asking);
      auto name = llvm::find_if(names, [&](const std::string &each) { return matchesName(rule.match, each); });
      if (name == names.end())
        continue;
      Asked asked{parameter, rule, *name, use};
      bool isTransposed = nn::isTransposedAlias(parameter, *name);
      if (rule.decidesCut && !decision.cut)
        decision.isTransposed = isTransposed;
      if (rule.decidesCut)
        asked.answer(decision.cut, [&](const ParamRule &first) {
          return rule.shard == first.shard && isTransposed == decision.isTransposed &&
                 rule.outputReplicate == first.outputReplicate;
        });
      if (rule.trainable)
        asked.answer(decision.trainable, [&](const ParamRule &first) { return rule.trainable == first.trainable; });
    }
    if (decision.cut || decision.trainable)
      decisions.push_back(decision);
  }
  for (auto [rule, use] : llvm::zip_equal(sidecar.params, uses))
    if (!rule.optional && !use.decides && (use.before || !use.agrees))
      return decidesNothing(sidecar, rule, use, allNames);
  return decisions;
}

} // namespace hpc
