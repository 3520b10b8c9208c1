// A spec fits a mesh if every part of a dim is cut over axes such that the devices of each shard are exactly the ranks
// that have its coordinates there.
#include "compiler/Import/AnnotationRules.h"

#include "compiler/Import/OnnxTensorScan.h"
#include "runtime/base/CountText.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <set>

namespace hpc::onnx {
namespace {

using Axes = std::vector<std::string>; ///< "dp", "tp", outermost first

/// How devices are arranged: the ranks of a stage by the axes of a mesh, stage after stage.
struct Grid {
  dist::Mesh degrees; ///< without time
  int64_t stages;
  dist::Mesh mesh;    ///< of one stage
  std::string layout; ///< that has axes of its own, or ""
  explicit Grid(const dist::Mesh &all, std::string layout = "")
      : degrees(dist::axesWithout(all, dist::AxisRole::Time)), stages(degrees.sizeOf(dist::AxisRole::Pipeline)),
        mesh(dist::axesWithout(degrees, dist::AxisRole::Pipeline)), layout(std::move(layout)) {}
  int64_t perStage() const { return mesh.numCoordinates(); }
  int64_t size(const std::string &axis) const { return mesh.size(axis); }
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
  for (int64_t s = stage.value_or(0); s < (stage ? *stage + 1 : grid.stages); ++s)
    for (int64_t rank = 0; rank < grid.perStage(); ++rank) {
      std::vector<int64_t> at = grid.mesh.coordinate(rank);
      int64_t shard = 0;
      for (const std::string &axis : digits)
        shard = shard * grid.size(axis) + at[size_t(grid.mesh.index(axis))];
      devices[size_t(shard)].push_back(s * grid.perStage() + rank);
    }
  return devices;
}

/// Every way to cut over one axis or more of the grid, the first the outermost.
std::vector<Axes> orderedAxes(const Grid &grid) {
  std::vector<Axes> all = {{}};
  for (size_t next = 0; next < all.size(); ++next)
    for (const dist::Mesh::Axis &axis : grid.mesh.axes)
      if (axis.size > 1 && std::find(all[next].begin(), all[next].end(), axis.name) == all[next].end()) {
        all.push_back(all[next]);
        all.back().push_back(axis.name);
      }
  all.erase(all.begin());
  return all;
}

/// The axes of every part of every dim, if the spec fits the grid.
std::optional<std::vector<Axes>> fitSpec(const ShardingSpec &spec, std::optional<int64_t> stage, const Grid &grid) {
  std::vector<int64_t> shards;
  for (const ShardedDim &dim : spec.dims)
    for (const ShardedPart &part : dim.parts)
      shards.push_back(part.shards);
  const std::vector<Axes> choices = orderedAxes(grid);
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
            std::none_of(choice.begin(), choice.end(), [&](const std::string &axis) { return used.count(axis); })) {
          longer.push_back(axes);
          longer.back().push_back(choice);
        }
    }
    pending = std::move(longer); // few: there are few axes
  }
  // Counts all devices, or those of the first device's stage; the count is checked before anything is allocated.
  int64_t named = 0, perStage = grid.perStage(), first = spec.devices.front().front() / perStage;
  for (const std::vector<int64_t> &members : spec.devices)
    named += int64_t(members.size());
  bool isEverywhere = named == perStage * grid.stages, isStage = named == perStage && (!stage || *stage == first);
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

/// The grid in a configuration's name, "dp=1 pp=2 tp=2" or "pp=2 tp.x=2 tp.y=2 layout=2d"; nullopt where it is another text.
std::optional<Grid> gridIn(const std::string &name) {
  dist::GivenSizes sizes;
  std::string layout;
  std::istringstream words(name);
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    std::string key = word.substr(0, equals);
    const char *end = word.data() + word.size();
    if (equals == std::string::npos)
      return std::nullopt;
    if (key == "layout") {
      layout = word.substr(equals + 1);
      continue;
    }
    int64_t &size = sizes[key];
    if (auto read = std::from_chars(word.data() + equals + 1, end, size);
        read.ec != std::errc() || read.ptr != end || size < 1 || size > dist::maxDegree)
      return std::nullopt;
  }
  // A layout's own axes stand in the place of the one that they arrange, as they do in meshes.
  dist::Mesh degrees;
  int64_t devices = 1;
  for (const dist::AxisKind &kind : dist::axisKinds()) {
    std::vector<std::string> names = dist::ownAxes(kind);
    if (std::none_of(names.begin(), names.end(), [&](const std::string &own) { return sizes.count(own); }))
      names = {kind.name};
    for (const std::string &axis : names)
      if (auto given = sizes.find(axis); given != sizes.end() || names.size() == 1) {
        degrees.axes.push_back({axis, given == sizes.end() ? 1 : given->second, kind.role});
        devices *= degrees.axes.back().size;
        if (devices > dist::maxDegree)
          return std::nullopt;
      }
  }
  for (const auto &[axis, size] : sizes)
    if (degrees.index(axis) < 0)
      return std::nullopt;
  return Grid(degrees, layout);
}

/// All grids of so many stages of so many ranks over data and tensor axes; the innermost are as long as they can be first. Others are found by name alone.
void addGrids(dist::Mesh degrees, int64_t stages, int64_t perStage, std::vector<Grid> &grids, size_t axis = 0) {
  if (axis == degrees.axes.size())
    return perStage == 1 ? (void)grids.emplace_back(degrees) : (void)0;
  dist::Mesh::Axis &own = degrees.axes[axis];
  if (own.role != dist::AxisRole::Data && own.role != dist::AxisRole::Tensor) {
    own.size = own.role == dist::AxisRole::Pipeline ? stages : 1;
    return addGrids(degrees, stages, perStage, grids, axis + 1);
  }
  for (own.size = 1; own.size <= perStage; ++own.size)
    if (perStage % own.size == 0)
      addGrids(degrees, stages, perStage / own.size, grids, axis + 1);
}

Expected<Grid> findGrid(const DeviceAnnotations &annotations) {
  std::vector<Grid> grids;
  if (std::optional<Grid> spelt = gridIn(annotations.configuration); spelt && dist::ranksOf(spelt->degrees) == annotations.devices)
    grids.push_back(*spelt);
  int64_t stages = 1;
  for (const NodeAnnotation &node : annotations.nodes)
    stages = std::max(stages, node.stage.value_or(0) + 1);
  if (annotations.devices % stages)
    return Status::error(ErrorKind::Unsupported, "configuration '" + annotations.configuration + "' has " +
                                                     std::to_string(stages) + " pipeline stages and " +
                                                     countText(annotations.devices, "device") +
                                                     "; every stage takes as many devices here");
  int64_t perStage = annotations.devices / stages;
  addGrids(dist::degreesOf(), stages, perStage, grids);
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
  for (const dist::Mesh::Axis &axis : grid->degrees.axes)
    sidecar.mesh[axis.name] = axis.size;
  sidecar.layout = grid->layout;
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
        rule.inferred = annotations->binding && !annotations->binding->count(spec.tensor);
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
    if (grid.size(cut.axis) > 1) // none of time
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
  Grid grid(layout.degrees);
  DeviceAnnotations annotations;
  for (const dist::Mesh::Axis &axis : grid.degrees.axes)
    annotations.configuration += (annotations.configuration.empty() ? "" : " ") + axis.name + "=" + std::to_string(axis.size);
  if (!layout.layout.empty())
    annotations.configuration += " layout=" + layout.layout;
  annotations.devices = dist::ranksOf(layout.degrees);
  annotations.binding = layout.binding;
  std::vector<NodeTensors> nodes = nodeTensors(model);
  std::set<std::string> made;
  for (const NodeTensors &node : nodes)
    made.insert(node.outputs.begin(), node.outputs.end());
  for (const NodeTensors &node : nodes) {
    NodeAnnotation annotation;
    annotation.node = node.node;
    if (auto stage = layout.stageOfNode.find(node.node); grid.stages > 1 && stage != layout.stageOfNode.end())
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
