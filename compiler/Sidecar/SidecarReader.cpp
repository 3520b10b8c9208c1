// From JSON to the structs of Sidecar.h: every key, kind and number is checked here, what depends on a model is not.
#include "compiler/Sidecar/JsonTree.h"
#include "compiler/Sidecar/Sidecar.h"
#include "runtime/base/Nearest.h"

#include <algorithm>

namespace hpc {
namespace {

using dist::maxDegree;

/// Reads the tree; the first error is kept, and what is read after it means nothing.
class Reader {
public:
  explicit Reader(const std::string &file) { sidecar.file = file; }

  Expected<Sidecar> read(const JsonTree &root) {
    if (root.kind != JsonTree::Object)
      fail(root, std::string("a sidecar is an object, this is ") + root.kindName() +
                     "; write {\"version\": 1, \"params\": [...]}");
    checkKeys(root, "a sidecar", {"$schema", "version", "mesh", "plan", "params", "tensors", "stages"});
    const JsonTree *version = root.find("version");
    if (failure.ok() && !version)
      fail(root, "there is no \"version\"; write \"version\": 1");
    else if (failure.ok() && (version->kind != JsonTree::Integer || version->integer != 1))
      fail(*version, "\"version\" is " + shown(*version) + "; this compiler reads version 1");
    if (const JsonTree *schema = root.find("$schema"); schema && schema->kind != JsonTree::String)
      fail(*schema, "\"$schema\" is " + shown(*schema) + "; it is the address of a schema, for editors");
    if (const JsonTree *mesh = root.find("mesh"))
      readMesh(*mesh);
    if (const JsonTree *plan = root.find("plan"))
      readPlan(*plan);
    for (const JsonTree &rule : list(root, "params"))
      readParam(rule);
    for (const JsonTree &rule : list(root, "tensors"))
      readTensor(rule);
    for (const JsonTree &rule : list(root, "stages"))
      readStage(rule);
    if (!failure.ok())
      return failure;
    return std::move(sidecar);
  }

private:
  void fail(const JsonTree &at, const std::string &what) {
    if (failure.ok())
      failure = Status::error(ErrorKind::Sidecar, what).at(sidecar.file + ":" + std::to_string(at.line));
  }

  static std::string shown(const JsonTree &value) {
    switch (value.kind) {
    case JsonTree::Integer:
      return std::to_string(value.integer);
    case JsonTree::String:
      return jsonQuoted(value.text);
    case JsonTree::Bool:
      return value.boolean ? "true" : "false";
    case JsonTree::Real:
      return value.text;
    default:
      return value.kindName();
    }
  }

  void checkKeys(const JsonTree &object, const std::string &what, const std::vector<std::string> &known) {
    for (const auto &[key, value] : object.members) {
      if (std::find(known.begin(), known.end(), key) != known.end())
        continue;
      std::vector<std::string> nearest = nearestNames(key, known);
      fail(value, what + " has no key " + jsonQuoted(key) +
                      (nearest.empty() ? "; its keys are " + anyOf(known, "\"") : "; did you mean " + anyOf(nearest, "\"") + "?"));
    }
  }

  /// A rule's own object; an empty one after an error.
  const JsonTree &object(const JsonTree &tree, const std::string &what, const std::vector<std::string> &keys) {
    static const JsonTree nothing;
    if (tree.kind != JsonTree::Object) {
      fail(tree, what + " is an object, this is " + shown(tree));
      return nothing;
    }
    checkKeys(tree, what, keys);
    return failure.ok() ? tree : nothing;
  }

  const std::vector<JsonTree> &list(const JsonTree &tree, const char *key) {
    static const std::vector<JsonTree> nothing;
    const JsonTree *found = tree.find(key);
    if (!found)
      return nothing;
    if (found->kind != JsonTree::Array)
      fail(*found, "\"" + std::string(key) + "\" is a list, this is " + shown(*found));
    return found->items;
  }

  int64_t integer(const JsonTree &value, const std::string &what, int64_t least, int64_t most) {
    if (value.kind != JsonTree::Integer || value.integer < least || value.integer > most)
      fail(value, what + " is " + shown(value) + "; it must be a whole number from " + std::to_string(least) + " to " +
                      std::to_string(most));
    return value.integer;
  }

  std::optional<int64_t> optionalInteger(const JsonTree &tree, const char *key, int64_t least, int64_t most) {
    const JsonTree *found = tree.find(key);
    return found ? std::optional(integer(*found, "\"" + std::string(key) + "\"", least, most)) : std::nullopt;
  }

  bool boolean(const JsonTree &tree, const char *key) {
    const JsonTree *found = tree.find(key);
    if (found && found->kind != JsonTree::Bool)
      fail(*found, "\"" + std::string(key) + "\" is " + shown(*found) + "; it must be true or false");
    return found && found->boolean;
  }

  std::string text(const JsonTree &tree, const char *key, const std::string &what) {
    const JsonTree *found = tree.find(key);
    if (!found)
      fail(tree, what + " needs \"" + key + "\"");
    else if (found->kind != JsonTree::String || found->text.empty())
      fail(*found, "\"" + std::string(key) + "\" is " + shown(*found) + "; it must be a string that is not empty");
    else if (found->text.find('\0') != std::string::npos)
      fail(*found, "\"" + std::string(key) + "\" holds a zero byte; no name does");
    return found ? found->text : std::string();
  }

  void readMesh(const JsonTree &tree) {
    std::vector<std::string> names;
    for (const dist::AxisKind &kind : dist::axisKinds()) {
      names.push_back(kind.name);
      for (const std::string &own : dist::ownAxes(kind))
        names.push_back(own);
    }
    std::vector<std::string> keys = names;
    keys.push_back("layout");
    const JsonTree &mesh = object(tree, "\"mesh\"", keys);
    for (const std::string &name : names)
      if (std::optional<int64_t> size = optionalInteger(mesh, name.c_str(), 1, maxDegree))
        sidecar.mesh[name] = *size;
    if (mesh.find("layout"))
      sidecar.layout = text(mesh, "layout", "\"mesh\"");
  }

  std::string oneOf(const JsonTree &tree, const char *key, const std::vector<std::string> &names) {
    const std::string name = tree.find(key) ? text(tree, key, "\"plan\"") : "";
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      fail(*tree.find(key), "\"" + std::string(key) + "\" is " + jsonQuoted(name) + "; it must be " + anyOf(names, "\""));
    return name;
  }

  void readPlan(const JsonTree &tree) {
    const JsonTree &plan = object(tree, "\"plan\"", {"chunks", "schedule", "zero", "recompute", "memory", "cp_mode"});
    PlanChoices &choices = sidecar.plan;
    choices.chunks = optionalInteger(plan, "chunks", 1, maxDegree);
    choices.zero = optionalInteger(plan, "zero", 0, 3);
    choices.memory = optionalInteger(plan, "memory", 1, (int64_t(1) << 62) - 1);
    choices.schedule = oneOf(plan, "schedule", {"gpipe", "1f1b", "interleaved", "zb-h1"});
    choices.recompute = oneOf(plan, "recompute", {"none", "attention", "full", "auto"});
    choices.cpMode = oneOf(plan, "cp_mode", {"gather", "ring", "ulysses"});
  }

  SidecarCut readCut(const JsonTree &tree) {
    const JsonTree &cut = object(tree, "a cut", {"dim", "axis", "of", "at", "parts"});
    SidecarCut result;
    if (cut.kind == JsonTree::Object && !cut.find("dim"))
      fail(cut, "a cut needs \"dim\", as in {\"dim\": -1, \"axis\": \"tp\"}");
    result.dim = optionalInteger(cut, "dim", -64, 63).value_or(0);
    result.axis = text(cut, "axis", "a cut");
    for (const JsonTree &size : list(cut, "of"))
      result.of.push_back(integer(size, "a size in \"of\"", 1, INT64_MAX));
    result.parts = optionalInteger(cut, "parts", 1, maxDegree);
    const JsonTree *of = cut.find("of"), *at = cut.find("at");
    if (of && result.of.empty())
      fail(*of, "\"of\" is empty; it lists the sizes of the parts of the dim, as in \"of\": [3, 12, 64], \"at\": 1");
    else if (!of != !at)
      fail(of ? *of : *at, "\"of\" and \"at\" go together: \"of\": [3, 12, 64], \"at\": 1 cuts the 12");
    else if (at)
      result.at = size_t(integer(*at, "\"at\"", 0, 63));
    return result;
  }

  std::vector<SidecarCut> readCuts(const JsonTree &rule, const std::string &what) {
    std::vector<SidecarCut> cuts;
    if (rule.kind == JsonTree::Object && !rule.find("shard"))
      fail(rule, what + " needs \"shard\"; [] keeps it whole on every rank");
    for (const JsonTree &cut : list(rule, "shard"))
      cuts.push_back(readCut(cut));
    return cuts;
  }

  void readMatch(const JsonTree &tree, const JsonTree &object, const std::string &what, SidecarRule &rule) {
    rule.line = tree.line;
    rule.match = text(object, "match", what);
    rule.optional = boolean(object, "optional");
  }

  void readParam(const JsonTree &tree) {
    const std::string what = "a rule of \"params\"";
    const JsonTree &object = this->object(tree, what, {"match", "shard", "compute", "output_replicate", "inferred", "trainable", "optional"});
    ParamRule rule;
    readMatch(tree, object, what, rule);
    if (object.find("trainable"))
      rule.trainable = boolean(object, "trainable");
    rule.decidesCut = object.find("shard") || !rule.trainable;
    if (rule.decidesCut)
      rule.shard = readCuts(object, what);
    for (const char *key : {"compute", "output_replicate", "inferred"})
      if (const JsonTree *about = object.find(key); about && !rule.decidesCut)
        fail(*about, "\"" + std::string(key) + "\" is about how a parameter is cut; give \"shard\" with it");
    if (const JsonTree *compute = object.find("compute");
        compute && (compute->kind != JsonTree::String || compute->text != "TP1D"))
      fail(*compute, "\"compute\" is " + shown(*compute) + "; \"TP1D\" is all that there is, or leave it out");
    rule.outputReplicate = boolean(object, "output_replicate");
    rule.inferred = boolean(object, "inferred");
    if (rule.inferred && rule.outputReplicate)
      fail(tree, "\"inferred\" says that the compiler chose it, and it never chooses \"output_replicate\"; leave one out");
    sidecar.params.push_back(std::move(rule));
  }

  void readTensor(const JsonTree &tree) {
    const std::string what = "a rule of \"tensors\"";
    const JsonTree &object = this->object(tree, what, {"match", "shard", "optional"});
    TensorRule rule;
    readMatch(tree, object, what, rule);
    rule.shard = readCuts(object, what);
    sidecar.tensors.push_back(std::move(rule));
  }

  void readStage(const JsonTree &tree) {
    const std::string what = "a rule of \"stages\"";
    const JsonTree &object = this->object(tree, what, {"match", "stage", "chunk", "optional"});
    StageRule rule;
    readMatch(tree, object, what, rule);
    std::optional<int64_t> stage = optionalInteger(object, "stage", 0, maxDegree - 1);
    if (!stage)
      fail(object, what + " needs \"stage\", which counts from 0");
    rule.stage = stage.value_or(0);
    rule.chunk = optionalInteger(object, "chunk", 0, maxDegree - 1).value_or(0);
    sidecar.stages.push_back(std::move(rule));
  }

  Sidecar sidecar;
  Status failure;
};

} // namespace

Expected<Sidecar> parseSidecar(std::string_view text, const std::string &file) {
  Expected<JsonTree> tree = parseJson(text, file);
  if (!tree.ok())
    return tree.status();
  return Reader(file).read(*tree);
}

} // namespace hpc
