// Meshes and the simple questions about a sharding: sizes, axes, whether it is legal on a mesh.
// An axis that the mesh does not have counts as size 1, so that a sharding can be read before the mesh is known.
#include "compiler/Dialect/Dist/Sharding.h"
#include "compiler/Dialect/Dist/ShardingSeed.h"
#include "runtime/base/CountText.h"

#include <algorithm>

namespace hpc::dist {

int Mesh::index(std::string_view axis) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == axis)
      return int(i);
  return -1;
}

int64_t Mesh::size(std::string_view axis) const {
  int i = index(axis);
  return i < 0 ? 1 : axes[i].size;
}

const char *name(AxisRole role) {
  switch (role) {
  case AxisRole::Time:
    return "time";
  case AxisRole::Data:
    return "data";
  case AxisRole::Tensor:
    return "tensor";
  case AxisRole::Sequence:
    return "sequence";
  case AxisRole::Pipeline:
    return "pipeline";
  }
  return "";
}

std::vector<std::string> Mesh::axesOf(AxisRole role) const {
  std::vector<std::string> names;
  for (const Axis &axis : axes)
    if (axis.role == role)
      names.push_back(axis.name);
  return names;
}

std::vector<std::string> Mesh::rowAxes() const {
  std::vector<std::string> names;
  for (const Axis &axis : axes)
    if (cutsRows(axis.role))
      names.push_back(axis.name);
  return names;
}

int64_t Mesh::rowRanks() const {
  int64_t ranks = 1;
  for (const Axis &axis : axes)
    if (cutsRows(axis.role))
      ranks *= axis.size;
  return ranks;
}

bool Mesh::hasRole(std::string_view axis, AxisRole role) const {
  int i = index(axis);
  return i >= 0 && axes[i].role == role;
}

int64_t Mesh::sizeOf(AxisRole role) const {
  int64_t size = 1;
  for (const Axis &axis : axes)
    if (axis.role == role)
      size *= axis.size;
  return size;
}

int64_t Mesh::numCoordinates() const {
  int64_t number = 1;
  for (const Axis &axis : axes)
    number *= axis.size;
  return number;
}

std::vector<int64_t> Mesh::coordinate(int64_t index) const {
  std::vector<int64_t> result(axes.size());
  for (size_t i = axes.size(); i-- > 0; index /= axes[i].size)
    result[i] = index % axes[i].size;
  return result;
}

std::vector<int64_t> further(std::vector<int64_t> coordinate, const Mesh &mesh, std::string_view axis, int64_t shift) {
  if (int place = mesh.index(axis); place >= 0) {
    const int64_t size = mesh.size(axis), moved = coordinate[size_t(place)] + shift % size;
    coordinate[size_t(place)] = (moved % size + size) % size;
  }
  return coordinate;
}

Sharding replicated(const std::vector<int64_t> &shape) {
  Sharding result;
  for (int64_t size : shape)
    result.dims.push_back(size == 1 ? DimSharding() : DimSharding{{size, {}}});
  return result;
}

int64_t globalSize(const DimSharding &dim) {
  int64_t size = 1;
  for (const SubDim &sub : dim)
    size *= sub.size;
  return size;
}

bool fitsInt64(const DimSharding &dim) {
  int64_t size = 1;
  for (const SubDim &sub : dim)
    if (__builtin_mul_overflow(size, sub.size, &size))
      return false;
  return true;
}

std::vector<int64_t> globalShape(const Sharding &sharding) {
  std::vector<int64_t> shape;
  for (const DimSharding &dim : sharding.dims)
    shape.push_back(globalSize(dim));
  return shape;
}

std::vector<std::string> cutAxes(const Sharding &sharding) {
  std::vector<std::string> axes;
  for (const DimSharding &dim : sharding.dims)
    for (const SubDim &sub : dim)
      axes.insert(axes.end(), sub.axes.begin(), sub.axes.end());
  return axes;
}

bool isCut(const DimSharding &dim) {
  return std::any_of(dim.begin(), dim.end(), [](const SubDim &sub) { return !sub.axes.empty(); });
}

bool isReplicated(const Sharding &sharding) {
  return sharding.partial.empty() && std::none_of(sharding.dims.begin(), sharding.dims.end(), isCut);
}

std::vector<std::string> axesWithRole(const std::vector<std::string> &axes, const Mesh &mesh, AxisRole role) {
  std::vector<std::string> result;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(result),
               [&](const std::string &axis) { return mesh.hasRole(axis, role); });
  return result;
}

bool cutsRows(AxisRole role) { return role == AxisRole::Data || role == AxisRole::Sequence; }

std::vector<std::string> rowAxesOf(const std::vector<std::string> &axes, const Mesh &mesh) {
  std::vector<std::string> result;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(result), [&](const std::string &axis) {
    return mesh.index(axis) >= 0 && cutsRows(mesh.axes[size_t(mesh.index(axis))].role);
  });
  return result;
}

bool cutsBatch(const std::vector<std::string> &axes, const Mesh &mesh) {
  return !axesWithRole(axes, mesh, AxisRole::Time).empty() || !rowAxesOf(axes, mesh).empty();
}

bool isPerMicroBatch(const Sharding &sharding, const Mesh &mesh) {
  return !axesWithRole(cutAxes(sharding), mesh, AxisRole::Time).empty() ||
         !axesWithRole(sharding.partial, mesh, AxisRole::Time).empty();
}

Sharding withoutRows(const Sharding &sharding, const Mesh &mesh) {
  Sharding result = sharding;
  auto drop = [&](std::vector<std::string> &axes) {
    for (const std::string &rows : rowAxesOf(axes, mesh))
      axes.erase(std::find(axes.begin(), axes.end(), rows));
  };
  for (DimSharding &dim : result.dims)
    for (SubDim &sub : dim)
      drop(sub.axes);
  drop(result.partial);
  return normalize(result, mesh);
}

Seed layoutSeed(Sharding sharding) {
  Seed seed;
  bool cuts = std::any_of(sharding.dims.begin(), sharding.dims.end(), isCut);
  for (const DimSharding &dim : sharding.dims)
    seed.open.push_back(cuts && !isCut(dim));
  seed.sharding = std::move(sharding);
  return seed;
}

static Status illegal(const Sharding &sharding, const std::string &what) {
  return Status::error(ErrorKind::Sidecar, "sharding '" + toString(sharding) + "': " + what);
}

Status verify(const Sharding &sharding, const std::vector<int64_t> &shape, const Mesh &mesh) {
  if (sharding.dims.size() != shape.size())
    return illegal(sharding, "has " + countText(sharding.dims.size(), "dim") + ", the tensor has " +
                                 std::to_string(shape.size()) + "; give one entry for each dim of the tensor");
  for (size_t d = 0; d < shape.size(); ++d) {
    for (const SubDim &sub : sharding.dims[d])
      if (sub.size < 0)
        return illegal(sharding, "dim " + std::to_string(d) + " has the negative size " + std::to_string(sub.size));
    if (!fitsInt64(sharding.dims[d]))
      return illegal(sharding, "the sub-dims of dim " + std::to_string(d) + " multiply to more than 2^63 - 1");
    if (int64_t size = globalSize(sharding.dims[d]); size != shape[d])
      return illegal(sharding, "the sub-dims of dim " + std::to_string(d) + " multiply to " + std::to_string(size) +
                                   ", the tensor's dim is " + std::to_string(shape[d]) +
                                   "; a sharding is written with global sizes");
  }
  std::vector<std::string> axes = cutAxes(sharding);
  axes.insert(axes.end(), sharding.partial.begin(), sharding.partial.end());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (mesh.index(axes[i]) < 0)
      return illegal(sharding, "the mesh '" + toString(mesh) + "' has no axis '" + axes[i] + "'");
    if (std::find(axes.begin(), axes.begin() + i, axes[i]) != axes.begin() + i)
      return illegal(sharding, "axis '" + axes[i] + "' is used twice; an axis cuts one sub-dim or is partial");
  }
  return Status::success();
}

} // namespace hpc::dist
