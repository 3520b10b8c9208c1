// A spec fits a mesh if every part of a dim is cut over axes such that the devices of each shard are exactly the ranks
// that have its coordinates there.
#include "compiler/Import/AnnotationRules.h"

#include "compiler/Import/OnnxTensorScan.h"
#include "runtime/base/CountText.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace hpc::onnx {
namespace {

using Axes = std::vector<std::string>; ///< "dp", "tp", outermost first

struct Grid {
  int64_t dp = 1, pp = 1, tp = 1;
  int64_t size(const std::string &axis) const { return axis == "dp" ? dp : tp; }
  int64_t sizeOf(const Axes &axes) const {
    int64_t size = 1;
    for (const std::string &axis : axes)
      size *= this->size(axis);
    return size;
  }
};

/// By shard: the devices that hold it, where the parts of all dims are cut over `axes` in order; of one stage, or of all.
std::vector<std::vector<int64_t>> shardDevices(const Grid &grid, const std::vector<Axes> &axes,
                                               std::optional<int64_t> stage) {
  Axes digits; // major to minor
  for (const Axes &part : axes)
    digits.insert(digits.end(), part.begin(), part.end());
  std::vector<std::vector<int64_t>> devices(size_t(grid.sizeOf(digits)));
  for (int64_t s = stage.value_or(0); s < (stage ? *stage + 1 : grid.pp); ++s)
    for (int64_t d = 0; d < grid.dp; ++d)
      for (int64_t t = 0; t < grid.tp; ++t) {
        int64_t shard = 0;
        for (const std::string &axis : digits)
          shard = shard * grid.size(axis) + (axis == "dp" ? d : t);
        devices[size_t(shard)].push_back((s * grid.dp + d) * grid.tp + t);
      }
  return devices;
}

/// The axes of every part of every dim, if the spec fits the grid.
std::optional<std::vector<Axes>> fitSpec(const ShardingSpec &spec, std::optional<int64_t> stage, const Grid &grid) {
  std::vector<int64_t> shards;
  for (const ShardedDim &dim : spec.dims)
    for (const ShardedPart &part : dim.parts)
      shards.push_back(part.shards);
  static const std::vector<Axes> choices = {{"tp"}, {"dp"}, {"dp", "tp"}, {"tp", "dp"}};
  std::vector<std::vector<Axes>> pending = {{}}; // choices for the first parts
  for (int64_t count : shards) {
    std::vector<std::vector<Axes>> longer;
    for (const std::vector<Axes> &axes : pending) {
      std::set<std::string> used;
      for (const Axes &part : axes)
        used.insert(part.begin(), part.end());
      if (count == 1) {
        longer.push_back(axes);
        longer.back().push_back({});
        continue;
      }
      for (const Axes &choice : choices)
        if (grid.sizeOf(choice) == count &&
            std::none_of(choice.begin(), choice.end(),
                         [&](const std::string &axis) { return used.count(axis) || grid.size(axis) == 1; })) {
          longer.push_back(axes);
          longer.back().push_back(choice);
        }
    }
    pending = std::move(longer); // few: there are two axes
  }
  // Of all devices, or of the stage in which the first of them is; the count decides before anything is made.
  int64_t named = 0, perStage = grid.dp * grid.tp, first = spec.devices.front().front() / perStage;
  for (const std::vector<int64_t> &members : spec.devices)
    named += int64_t(members.size());
  bool isEverywhere = named == perStage * grid.pp, isStage = named == perStage && (!stage || *stage == first);
  for (const std::vector<Axes> &axes : pending)
    if ((isEverywhere && spec.devices == shardDevices(grid, axes, std::nullopt)) ||
        (isStage && spec.devices == shardDevices(grid, axes, first)))
      return axes;
  return std::nullopt;
}

/// The first spec that does not fit, by its node; null where all do.
const ShardingSpec *misfit(const DeviceAnnotations &annotations, const Grid &grid, std::string &node) {
  for (const NodeAnnotation &each : annotations.nodes)
    for (const ShardingSpec &spec : each.specs)
      if (!fitSpec(spec, each.stage, grid)) {
        node = each.node;
        return &spec;
      }
  return nullptr;
}

std::string devicesText(const ShardingSpec &spec) {
  std::string text;
  for (const std::vector<int64_t> &members : spec.devices) {
    std::string group;
    for (int64_t member : members)
      group += (group.empty() ? "" : ", ") + std::to_string(member);
    text += (text.empty() ? "" : ", ") + (members.size() > 1 ? "[" + group + "]" : group);
  }
  return "[" + text + "]";
}

Expected<Grid> findGrid(const DeviceAnnotations &annotations) {
  std::vector<Grid> grids;
  long long dp = 0, pp = 0, tp = 0;
  if (std::sscanf(annotations.configuration.c_str(), "dp=%lld pp=%lld tp=%lld", &dp, &pp, &tp) == 3 && dp > 0 && pp > 0 &&
      tp > 0 && dp <= annotations.devices && pp <= annotations.devices && tp <= annotations.devices &&
      dp * pp * tp == annotations.devices)
    grids.push_back({dp, pp, tp});
  int64_t stages = 1;
  for (const NodeAnnotation &node : annotations.nodes)
    stages = std::max(stages, node.stage.value_or(0) + 1);
  if (annotations.devices % stages)
    return Status::error(ErrorKind::Unsupported, "configuration '" + annotations.configuration + "' has " +
                                                     std::to_string(stages) + " pipeline stages and " +
                                                     countText(annotations.devices, "device") +
                                                     "; every stage takes as many devices here");
  int64_t perStage = annotations.devices / stages;
  for (int64_t each = perStage; each >= 1; --each)
    if (perStage % each == 0)
      grids.push_back({perStage / each, stages, each});
  std::string node;
  for (const Grid &grid : grids)
    if (!misfit(annotations, grid, node))
      return grid;
  const ShardingSpec *spec = misfit(annotations, grids.back(), node);
  for (const Grid &grid : grids) // the most telling: one that fits no grid at all
    if (const ShardingSpec *other = misfit(annotations, grid, node); other && other != spec)
      spec = other;
  return Status::error(ErrorKind::Unsupported, "configuration '" + annotations.configuration + "': no grid of " +
                                                   countText(annotations.devices, "device") + " in " +
                                                   countText(stages, "stage") +
                                                   ", device = (stage * dp + i) * tp + j, has the shards of '" +
                                                   spec->tensor + "' on " + devicesText(*spec) + " (node '" + node +
                                                   "'); number the devices so, or use a sidecar and --spec");
}

std::vector<SidecarCut> cutsOf(const ShardingSpec &spec, const std::vector<Axes> &axes, const Grid &grid) {
  std::vector<SidecarCut> cuts;
  size_t number = 0;
  for (const ShardedDim &dim : spec.dims)
    for (size_t at = 0; at < dim.parts.size(); ++at, ++number)
      for (const std::string &axis : axes[number]) {
        SidecarCut cut;
        cut.dim = dim.axis;
        cut.axis = axis;
        cut.parts = grid.size(axis);
        if (dim.parts.size() > 1) {
          for (const ShardedPart &part : dim.parts)
            cut.of.push_back(part.size);
          cut.at = at;
        }
        cuts.push_back(std::move(cut));
      }
  return cuts;
}

} // namespace

Expected<std::optional<AnnotationRules>> rulesOfAnnotations(const std::string &path, const std::string &configuration) {
  Expected<DeviceAnnotations> annotations = readDeviceAnnotations(path, configuration);
  if (!annotations.ok())
    return annotations.status();
  if (annotations->devices == 0)
    return std::optional<AnnotationRules>();
  Expected<Grid> grid = findGrid(*annotations);
  if (!grid.ok())
    return grid.status().at(path);
  Sidecar sidecar;
  sidecar.file = path;
  sidecar.mesh = {std::nullopt, grid->dp, grid->pp, grid->tp};
  std::set<std::string> parameters(annotations->parameters.begin(), annotations->parameters.end());
  std::map<std::string, std::pair<std::string, std::vector<SidecarCut>>> decided; // by tensor: node, cuts
  for (const NodeAnnotation &node : annotations->nodes) {
    for (const ShardingSpec &spec : node.specs) {
      std::vector<SidecarCut> cuts = cutsOf(spec, *fitSpec(spec, node.stage, *grid), *grid);
      auto [entry, isNew] = decided.try_emplace(spec.tensor, node.node, cuts);
      if (!isNew && entry->second.second != cuts)
        return Status::error(ErrorKind::Unsupported,
                             path + ": nodes '" + entry->second.first + "' and '" + node.node + "' want '" + spec.tensor +
                                 "' cut differently; a tensor has one layout here, and where a node needs another the "
                                 "compiler reshards: leave the second sharding_spec out");
      if (!isNew)
        continue;
      if (parameters.count(spec.tensor)) {
        ParamRule rule;
        rule.match = patternFor(spec.tensor);
        rule.shard = cuts;
        rule.optional = true;
        sidecar.params.push_back(std::move(rule));
      } else {
        TensorRule rule;
        rule.match = patternFor(spec.tensor);
        rule.shard = cuts;
        rule.optional = true;
        sidecar.tensors.push_back(std::move(rule));
      }
    }
    if (node.stage) {
      StageRule rule;
      rule.match = patternFor(node.node);
      rule.stage = *node.stage;
      rule.optional = true;
      sidecar.stages.push_back(std::move(rule));
    }
  }
  return std::optional(AnnotationRules{std::move(sidecar), annotations->configuration, annotations->otherConfigurations});
}

// ---- writing ------------------------------------------------------------------------------------

static ShardingSpec specOf(const std::string &tensor, const std::vector<SidecarCut> &cuts, std::optional<int64_t> stage,
                           const Grid &grid) {
  ShardingSpec spec;
  spec.tensor = tensor;
  std::vector<Axes> axes;
  std::map<int64_t, std::vector<const SidecarCut *>> byDim;
  for (const SidecarCut &cut : cuts)
    if (cut.axis != "mb" && grid.size(cut.axis) > 1)
      byDim[cut.dim].push_back(&cut);
  for (auto &[dim, members] : byDim) {
    ShardedDim sharded{dim, std::vector<ShardedPart>(std::max<size_t>(members.front()->of.size(), 1))};
    std::vector<Axes> partAxes(sharded.parts.size());
    for (size_t at = 0; at < sharded.parts.size(); ++at)
      sharded.parts[at].size = members.front()->of.empty() ? 0 : members.front()->of[at];
    for (const SidecarCut *cut : members) {
      partAxes[cut->at].push_back(cut->axis);
      sharded.parts[cut->at].shards *= grid.size(cut->axis);
    }
    axes.insert(axes.end(), partAxes.begin(), partAxes.end());
    spec.dims.push_back(std::move(sharded));
  }
  spec.devices = shardDevices(grid, axes, stage);
  return spec;
}

Expected<std::string> annotatedModel(std::string_view model, const ChosenLayout &layout) {
  Grid grid{layout.dp, layout.pp, layout.tp};
  DeviceAnnotations annotations;
  annotations.configuration = "dp=" + std::to_string(grid.dp) + " pp=" + std::to_string(grid.pp) +
                              " tp=" + std::to_string(grid.tp);
  annotations.devices = grid.dp * grid.pp * grid.tp;
  std::vector<NodeTensors> nodes = nodeTensors(model);
  std::set<std::string> made;
  for (const NodeTensors &node : nodes)
    made.insert(node.outputs.begin(), node.outputs.end());
  for (const NodeTensors &node : nodes) {
    NodeAnnotation annotation;
    annotation.node = node.node;
    if (auto stage = layout.stageOfNode.find(node.node); grid.pp > 1 && stage != layout.stageOfNode.end())
      annotation.stage = stage->second;
    std::set<std::string> seen;
    auto add = [&](const std::string &name) {
      if (auto found = layout.tensors.find(name); found != layout.tensors.end() && seen.insert(name).second)
        annotation.specs.push_back(specOf(name, found->second, annotation.stage, grid));
    };
    for (const std::string &input : node.inputs)
      if (!made.count(input))
        add(input);
    for (const std::string &output : node.outputs)
      add(output);
    if (annotation.stage || !annotation.specs.empty())
      annotations.nodes.push_back(std::move(annotation));
  }
  return withDeviceAnnotations(model, annotations);
}

} // namespace hpc::onnx
