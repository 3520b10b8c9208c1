// Every dim is taken apart once, as the first cut that names it says; all others have to agree.
#include "compiler/Sidecar/Cuts.h"

#include "compiler/MLIR.h"
#include "runtime/base/Nearest.h"

namespace hpc {

using namespace dist;

static std::string listText(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

/// Whether `sizes` multiply to `size`, without overflow.
static bool multiplyTo(const std::vector<int64_t> &sizes, int64_t size) {
  for (int64_t factor : sizes) {
    if (factor <= 0 || size % factor)
      return false;
    size /= factor;
  }
  return size == 1;
}

static std::string unknownAxis(const SidecarCut &cut, const Mesh &mesh) {
  if (cut.axis == "pp")
    return "axis \"pp\" cuts no tensor: who computes what is said in \"stages\"";
  std::vector<std::string> axes, parts;
  for (const Mesh::Axis &axis : mesh.axes) {
    axes.push_back(axis.name);
    if (axis.name.compare(0, cut.axis.size() + 1, cut.axis + ".") == 0)
      parts.push_back(axis.name);
  }
  if (!parts.empty())
    return "the layout has arranged axis \"" + cut.axis + "\"; use " + anyOf(parts, "\"");
  std::vector<std::string> nearest = nearestNames(cut.axis, axes);
  return "there is no axis \"" + cut.axis + "\"" +
         (nearest.empty() ? "; the mesh has " + anyOf(axes, "\"") : "; did you mean " + anyOf(nearest, "\"") + "?");
}

Expected<Sharding> resolveCuts(const std::vector<SidecarCut> &cuts, const std::vector<int64_t> &shape, bool transposed,
                               const Mesh &mesh, const std::string &subject) {
  auto wrong = [&](const std::string &what) { return Status::error(ErrorKind::Sidecar, subject + ": " + what); };
  int64_t rank = int64_t(shape.size());
  std::vector<int64_t> stored(shape);
  if (transposed)
    std::reverse(stored.begin(), stored.end());
  Sharding sharding = replicated(stored);
  std::vector<const SidecarCut *> firstOf(stored.size());
  std::vector<std::string> used;
  for (const SidecarCut &cut : cuts) {
    if (cut.dim < -rank || cut.dim >= rank)
      return wrong("dim " + std::to_string(cut.dim) + " is out of range, the shape is " + listText(stored) +
                   (rank == 0 ? "; leave the rule's cuts out" : "; use " + std::to_string(-rank) + " to " +
                                                                    std::to_string(rank - 1)));
    size_t dim = size_t(cut.dim < 0 ? cut.dim + rank : cut.dim);
    if (mesh.index(cut.axis) < 0)
      return wrong(unknownAxis(cut, mesh));
    if (cut.parts && *cut.parts != mesh.size(cut.axis))
      return wrong("\"parts\" is " + std::to_string(*cut.parts) + ", but axis \"" + cut.axis + "\" has " +
                   std::to_string(mesh.size(cut.axis)) + "; use --" +
                   (cut.axis == "mb" ? "micro-batches" : cut.axis) + "=" + std::to_string(*cut.parts) +
                   ", or leave \"parts\" out");
    if (std::find(used.begin(), used.end(), cut.axis) != used.end())
      return wrong("axis \"" + cut.axis + "\" cuts it twice; leave one cut out");
    used.push_back(cut.axis);
    if (!cut.of.empty() && !multiplyTo(cut.of, stored[dim]))
      return wrong("\"of\": " + listText(cut.of) + " does not multiply to dim " + std::to_string(cut.dim) +
                   ", whose size is " + std::to_string(stored[dim]) + " of " + listText(stored));
    if (cut.at >= std::max<size_t>(cut.of.size(), 1))
      return wrong("\"at\" is " + std::to_string(cut.at) + ", and \"of\": " + listText(cut.of) + " has parts 0 to " +
                   std::to_string(cut.of.size() - 1));
    if (!firstOf[dim]) {
      firstOf[dim] = &cut;
      sharding.dims[dim].clear();
      for (int64_t size : cut.of.empty() ? std::vector<int64_t>{stored[dim]} : cut.of)
        sharding.dims[dim].push_back({size, {}});
    } else if (firstOf[dim]->of != cut.of) {
      return wrong("two cuts take dim " + std::to_string(cut.dim) + " apart differently; give both the same \"of\"");
    }
    sharding.dims[dim][cut.at].axes.push_back(cut.axis);
  }
  if (transposed)
    std::reverse(sharding.dims.begin(), sharding.dims.end());
  return sharding;
}

std::optional<Sharding> reshapedCuts(const Sharding &sharding, const std::vector<int64_t> &shape, const Mesh &mesh) {
  if (globalShape(sharding) == shape)
    return sharding;
  DimSharding all; // as one dim, row-major
  for (const DimSharding &dim : sharding.dims)
    all.insert(all.end(), dim.begin(), dim.end());
  Sharding reshaped;
  if (!splitAt(all, shape, mesh, reshaped.dims))
    return std::nullopt;
  return reshaped;
}

std::vector<SidecarCut> cutsOf(const Sharding &sharding) {
  std::vector<SidecarCut> cuts;
  for (size_t dim = 0; dim < sharding.dims.size(); ++dim)
    for (size_t sub = 0; sub < sharding.dims[dim].size(); ++sub)
      for (const std::string &axis : sharding.dims[dim][sub].axes) {
        SidecarCut cut;
        cut.dim = int64_t(dim);
        cut.axis = axis;
        if (sharding.dims[dim].size() > 1) {
          for (const SubDim &part : sharding.dims[dim])
            cut.of.push_back(part.size);
          cut.at = sub;
        }
        cuts.push_back(std::move(cut));
      }
  return cuts;
}

} // namespace hpc
