// A parameter has many names: its own, those of the initializers that it holds, the modules that read it.
#include "compiler/Sidecar/ParamRules.h"

#include "compiler/Dialect/NN/TransposedAliases.h"

namespace hpc {

namespace {
/// What became of the rules while parameters were asked.
struct RuleUse {
  bool decides = false;
  const ParamDecision *before = nullptr; ///< the first decision that it came too late for, and would have changed
  std::string name;                      ///< by which it matched that
  bool agrees = false;                   ///< it came too late for all, and says the same
};
} // namespace

static Status decidesNothing(const Sidecar &sidecar, const ParamRule &rule, const RuleUse &use,
                             const std::vector<std::string> &names) {
  std::string text = "\"" + rule.match + "\" ";
  if (const ParamDecision *before = use.before) {
    std::string own = nn::ParameterOp(before->parameter).getName().str();
    text += "decides nothing: '" + use.name + "'" +
            (own == use.name ? "" : ", which is the parameter '" + own + "',") + " is decided by \"" +
            before->rule->match + "\" in line " + std::to_string(before->rule->line) +
            ", and the first rule that matches wins; move this rule before that one, or take one out";
  } else {
    std::string nearest = nearestMatch(rule.match, names);
    text += "matches no parameter; " +
            (nearest.empty() ? std::string("--list-params lists their names") : "the nearest is '" + nearest + "'");
  }
  return Status::error(ErrorKind::Sidecar, text).at(sidecar.place(rule));
}

Expected<std::vector<ParamDecision>> decideParams(const Sidecar &sidecar, func::FuncOp function) {
  std::vector<nn::ParameterOp> parameters(function.getOps<nn::ParameterOp>().begin(),
                                          function.getOps<nn::ParameterOp>().end());
  std::vector<ParamDecision> decisions;
  decisions.reserve(parameters.size()); // RuleUse points into it
  std::vector<RuleUse> uses(sidecar.params.size());
  std::vector<std::string> allNames;
  for (nn::ParameterOp parameter : parameters) {
    std::vector<std::string> names = namesOf(parameter);
    allNames.insert(allNames.end(), names.begin(), names.end());
    const ParamDecision *decided = nullptr;
    for (size_t number = 0; number < uses.size(); ++number) {
      const ParamRule &rule = sidecar.params[number];
      RuleUse &use = uses[number];
      auto name = llvm::find_if(names, [&](const std::string &each) { return matchesName(rule.match, each); });
      if (name == names.end())
        continue;
      bool isTransposed = nn::isTransposedAlias(parameter, *name);
      if (!decided) {
        decisions.push_back({parameter, &rule, isTransposed});
        decided = &decisions.back();
        use.decides = true;
      } else if (rule.shard == decided->rule->shard && isTransposed == decided->isTransposed &&
                 rule.outputReplicate == decided->rule->outputReplicate) {
        use.agrees = true;
      } else if (!use.before) {
        use.before = decided;
        use.name = *name;
      }
    }
  }
  for (auto [rule, use] : llvm::zip_equal(sidecar.params, uses))
    if (!rule.optional && !use.decides && (use.before || !use.agrees))
      return decidesNothing(sidecar, rule, use, allNames);
  return decisions;
}

} // namespace hpc
