// The table of axes, and degrees from what flags and sidecar give. A degree that nobody gives is 1.
#include "compiler/Dialect/Dist/MeshDegrees.h"

namespace hpc::dist {

const std::vector<AxisKind> &axisKinds() {
  static const std::vector<AxisKind> kinds = {
      {"mb", AxisRole::Time, "micro-batches", "Number of pieces that a batch is cut into (default: 1)"},
      {"dp", AxisRole::Data, "dp", "Degree of data parallelism (default: devices / (tp * cp * pp))"},
      {"pp", AxisRole::Pipeline, "pp", "Number of pipeline stages (default: 1)"},
      {"cp", AxisRole::Sequence, "cp", "Degree of context parallelism: ranks that share each sequence (default: 1)"},
      {"tp", AxisRole::Tensor, "tp", "Degree of tensor parallelism (default: 1)"},
  };
  return kinds;
}

std::vector<std::string> ownAxes(const AxisKind &kind) {
  std::vector<std::string> names;
  for (const char *own : {".x", ".y", ".z"})
    if (kind.role == AxisRole::Tensor)
      names.push_back(std::string(kind.name) + own);
  return names;
}

Mesh degreesOf(const GivenSizes &sizes) {
  Mesh mesh;
  for (const AxisKind &kind : axisKinds()) {
    auto given = sizes.find(kind.name);
    mesh.axes.push_back({kind.name, given == sizes.end() ? 1 : given->second, kind.role});
  }
  return mesh;
}

Mesh axesWithout(const Mesh &degrees, AxisRole role) {
  Mesh mesh;
  for (const Mesh::Axis &axis : degrees.axes)
    if (axis.role != role)
      mesh.axes.push_back(axis);
  return mesh;
}

int64_t ranksOf(const Mesh &degrees) { return axesWithout(degrees, AxisRole::Time).numCoordinates(); }

/// "tp * pp * dp = 2 * 2 * 1 = 4", or without the sizes.
static std::string productText(const Mesh &ranks, bool withSizes) {
  std::string names, sizes;
  for (size_t i = ranks.axes.size(); i-- > 0;) {
    names += (names.empty() ? "" : " * ") + ranks.axes[i].name;
    sizes += (sizes.empty() ? "" : " * ") + std::to_string(ranks.axes[i].size);
  }
  return names + " = " + (withSizes ? sizes + " = " : "") + std::to_string(ranks.numCoordinates());
}

Expected<Mesh> resolveDegrees(const GivenSizes &flags, std::optional<int64_t> devices, const GivenSizes &sidecar,
                              int64_t maxRanks) {
  auto usage = [](const std::string &message) { return Status::error(ErrorKind::Usage, message); };
  Mesh degrees = degreesOf(sidecar);
  Mesh::Axis *open = nullptr; // takes what the others leave of the devices
  for (Mesh::Axis &axis : degrees.axes)
    if (auto flag = flags.find(axis.name); flag != flags.end())
      axis.size = flag->second;
    else if (devices && axis.role == AxisRole::Data)
      open = &axis;
  if (open) {
    open->size = 1;
    Mesh others = axesWithout(axesWithout(degrees, AxisRole::Time), AxisRole::Data);
    if (*devices % ranksOf(degrees))
      return usage("--devices=" + std::to_string(*devices) + " is no multiple of " + productText(others, false) +
                   "; use a multiple, or other degrees");
    open->size = *devices / ranksOf(degrees);
  }
  std::string product = productText(axesWithout(degrees, AxisRole::Time), true) + " ranks";
  if (devices && ranksOf(degrees) != *devices)
    return usage(product + ", but --devices=" + std::to_string(*devices) + "; leave out --dp or --devices");
  if (ranksOf(degrees) > maxRanks)
    return usage(product + "; a plan has at most " + std::to_string(maxRanks));
  return degrees;
}

} // namespace hpc::dist
