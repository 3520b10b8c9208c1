// A sidecar as people would write it: a rule a line, nothing that is as it is without saying so.
#include "compiler/Sidecar/JsonTree.h"
#include "compiler/Sidecar/Sidecar.h"

namespace hpc {

static std::string joined(const std::vector<std::string> &parts, const char *separator) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : separator) + part;
  return text;
}

static std::string cutText(const SidecarCut &cut) {
  std::string text = "{\"dim\": " + std::to_string(cut.dim);
  if (!cut.of.empty()) {
    std::vector<std::string> sizes;
    for (int64_t size : cut.of)
      sizes.push_back(std::to_string(size));
    text += ", \"of\": [" + joined(sizes, ", ") + "], \"at\": " + std::to_string(cut.at);
  }
  text += ", \"axis\": " + jsonQuoted(cut.axis);
  return text + (cut.parts ? ", \"parts\": " + std::to_string(*cut.parts) : "") + "}";
}

static std::string endText(const SidecarRule &rule) { return rule.optional ? ", \"optional\": true}" : "}"; }

static std::string matchText(const SidecarRule &rule) { return "{\"match\": " + jsonQuoted(rule.match); }

static std::string shardText(const std::vector<SidecarCut> &shard) {
  std::vector<std::string> cuts;
  for (const SidecarCut &cut : shard)
    cuts.push_back(cutText(cut));
  return ", \"shard\": [" + joined(cuts, ", ") + "]";
}

static std::string trainableText(const ParamRule &rule) {
  return rule.trainable ? std::string(", \"trainable\": ") + (*rule.trainable ? "true" : "false") : "";
}

static std::string planText(const PlanChoices &choices) {
  std::vector<std::string> entries;
  for (auto [key, number] : {std::pair("chunks", &choices.chunks), {"zero", &choices.zero}, {"memory", &choices.memory}})
    if (*number)
      entries.push_back(jsonQuoted(key) + ": " + std::to_string(**number));
  for (auto [key, name] : {std::pair("schedule", &choices.schedule), {"recompute", &choices.recompute}, {"cp_mode", &choices.cpMode}})
    if (!name->empty())
      entries.push_back(jsonQuoted(key) + ": " + jsonQuoted(*name));
  return joined(entries, ", ");
}

std::string sidecarText(const Sidecar &sidecar) {
  std::vector<std::string> sections = {"\"version\": 1"}, degrees, params, tensors, stages;
  for (const dist::AxisKind &kind : dist::axisKinds())
    for (const auto &[axis, size] : sidecar.mesh)
      if (std::string_view(axis).substr(0, axis.find('.')) == kind.name)
        degrees.push_back(jsonQuoted(axis) + ": " + std::to_string(size));
  if (!sidecar.layout.empty())
    degrees.push_back("\"layout\": " + jsonQuoted(sidecar.layout));
  if (!degrees.empty())
    sections.push_back("\"mesh\": {" + joined(degrees, ", ") + "}");
  if (std::string plan = planText(sidecar.plan); !plan.empty())
    sections.push_back("\"plan\": {" + plan + "}");
  for (const ParamRule &rule : sidecar.params)
    params.push_back(matchText(rule) + (rule.decidesCut ? shardText(rule.shard) : "") + trainableText(rule) +
                     (rule.outputReplicate ? ", \"output_replicate\": true" : "") +
                     (rule.inferred ? ", \"inferred\": true" : "") + endText(rule));
  for (const TensorRule &rule : sidecar.tensors)
    tensors.push_back(matchText(rule) + shardText(rule.shard) + endText(rule));
  for (const StageRule &rule : sidecar.stages)
    stages.push_back(matchText(rule) + ", \"stage\": " + std::to_string(rule.stage) +
                     (rule.chunk ? ", \"chunk\": " + std::to_string(rule.chunk) : "") + endText(rule));
  for (auto [name, rules] : {std::pair("params", &params), std::pair("tensors", &tensors), std::pair("stages", &stages)})
    if (!rules->empty())
      sections.push_back(jsonQuoted(name) + ": [\n    " + joined(*rules, ",\n    ") + "\n  ]");
  return "{\n  " + joined(sections, ",\n  ") + "\n}\n";
}

} // namespace hpc
