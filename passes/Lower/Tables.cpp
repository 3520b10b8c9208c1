// Tabulation and compression.
#include "passes/Lower/Tables.h"

#include <algorithm>

namespace hpc {

/// The axis whose coordinate is the micro-batch; a mesh has one at most.
static bool isMicroBatch(const dist::Mesh::Axis &axis) { return axis.role == dist::AxisRole::Time; }

Tables::Tables(dist::Mesh mesh) : fullMesh(std::move(mesh)) {
  for (const dist::Mesh::Axis &axis : fullMesh.axes) {
    if (isMicroBatch(axis)) {
      batches = axis.size;
      continue;
    }
    rankMesh.axes.push_back(axis);
    rankAxes.push_back({axis.name, axis.size});
    ranks *= axis.size;
  }
}

std::vector<int64_t> Tables::coordinate(int64_t rank, int64_t microBatch) const {
  std::vector<int64_t> inStage = rankMesh.coordinate(rank), full;
  size_t next = 0;
  for (const dist::Mesh::Axis &axis : fullMesh.axes)
    full.push_back(isMicroBatch(axis) ? microBatch : inStage[next++]);
  return full;
}

plan::ByCoord Tables::table(const std::function<int64_t(const std::vector<int64_t> &)> &function) const {
  plan::ByCoord result;
  result.values.clear();
  for (int64_t microBatch = 0; microBatch < batches; ++microBatch)
    for (int64_t rank = 0; rank < ranks; ++rank)
      result.values.push_back(function(coordinate(rank, microBatch)));
  std::vector<int64_t> &values = result.values;
  if (std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == values[0]; }))
    values.resize(1);
  else if (std::equal(values.begin() + ranks, values.end(), values.begin()))
    values.resize(ranks); // value[i + R] == value[i] throughout: the same in every micro-batch
  return result;
}

plan::Slice Tables::slice(const dist::Sharding &sharding) const {
  plan::Slice slice;
  for (const dist::DimSharding &dim : sharding.dims)
    for (const dist::SubDim &sub : dim) {
      slice.view.push_back(sub.size);
      slice.start.push_back(table([&](const auto &at) { return dist::heldDigits(sub, fullMesh, at).start; }));
      slice.extent.push_back(table([&](const auto &at) { return dist::heldDigits(sub, fullMesh, at).extent; }));
      slice.box.push_back(dist::boxSize(sub, fullMesh));
    }
  if (slice.view.empty()) { // a scalar
    slice.view = slice.box = {1};
    slice.start = {0};
    slice.extent = {1};
  }
  return slice;
}

plan::ByCoord Tables::owner(const dist::Sharding &sharding, bool atEnd) const {
  std::vector<std::string> cut = dist::cutAxes(sharding);
  return table([&](const std::vector<int64_t> &at) -> int64_t {
    for (size_t axis = 0; axis < fullMesh.axes.size(); ++axis)
      if (int64_t speaker = atEnd && isMicroBatch(fullMesh.axes[axis]) ? fullMesh.axes[axis].size - 1 : 0;
          at[axis] != speaker && std::find(cut.begin(), cut.end(), fullMesh.axes[axis].name) == cut.end())
        return 0;
    return 1;
  });
}

/// Start and extent of every sub-dim at a coordinate: what it holds.
static std::vector<int64_t> held(const dist::Sharding &sharding, const dist::Mesh &mesh,
                                 const std::vector<int64_t> &at) {
  std::vector<int64_t> ranges;
  for (const dist::DimSharding &dim : sharding.dims)
    for (const dist::SubDim &sub : dim) {
      dist::Range range = dist::heldDigits(sub, mesh, at);
      ranges.push_back(range.extent ? range.start : 0);
      ranges.push_back(range.extent);
    }
  return ranges;
}

plan::ByCoord Tables::permuteSource(const dist::Sharding &before, const dist::Sharding &after,
                                    const std::vector<std::string> &axes) const {
  dist::Mesh group;
  for (const std::string &axis : axes)
    group.axes.push_back({axis, fullMesh.size(axis)});
  return table([&](const std::vector<int64_t> &at) -> int64_t {
    std::vector<int64_t> wanted = held(after, fullMesh, at);
    for (int64_t position = 0; position < group.numCoordinates(); ++position) {
      std::vector<int64_t> member = at, inGroup = group.coordinate(position);
      for (size_t i = 0; i < axes.size(); ++i)
        member[fullMesh.index(axes[i])] = inGroup[i];
      if (held(before, fullMesh, member) == wanted)
        return position;
    }
    return 0; // it holds nothing: any box will do
  });
}

} // namespace hpc
