// Tabulation and compression.
#include "passes/Lower/Tables.h"

#include "llvm/ADT/STLExtras.h"

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

plan::ByCoord Tables::table(const std::vector<std::string> &along, const Function &function) const {
  // 1. The mesh of these axes, in the order of the full one, and the function at each of its coordinates.
  dist::Mesh mesh;
  std::vector<size_t> places; // of its axes in the full mesh
  for (size_t axis = 0; axis < fullMesh.axes.size(); ++axis)
    if (llvm::is_contained(along, fullMesh.axes[axis].name)) {
      mesh.axes.push_back(fullMesh.axes[axis]);
      places.push_back(axis);
    }
  std::vector<int64_t> known, at(fullMesh.axes.size(), 0);
  for (int64_t number = 0; number < mesh.numCoordinates(); ++number) {
    for (auto [place, digit] : llvm::zip_equal(places, mesh.coordinate(number)))
      at[place] = digit;
    known.push_back(function(at));
  }
  if (llvm::all_equal(known))
    return {known[0]};
  // 2. Every rank and micro-batch takes the one of its own coordinate.
  auto numberOf = [&](const dist::Mesh::Axis &axis, int64_t digit) {
    int64_t stride = 0, after = 1;
    for (const dist::Mesh::Axis &each : llvm::reverse(mesh.axes)) {
      if (each.name == axis.name)
        stride = after;
      after *= each.size;
    }
    return stride * digit;
  };
  std::vector<int64_t> ofRank(size_t(ranks), 0), ofBatch = {0};
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (auto [axis, digit] : llvm::zip_equal(rankMesh.axes, rankMesh.coordinate(rank)))
      ofRank[size_t(rank)] += numberOf(axis, digit);
  for (const dist::Mesh::Axis &axis : mesh.axes)
    if (isMicroBatch(axis))
      for (int64_t microBatch = 1; microBatch < batches; ++microBatch)
        ofBatch.push_back(numberOf(axis, microBatch));
  plan::ByCoord result;
  std::vector<int64_t> &values = result.values;
  values.clear();
  values.reserve(ofRank.size() * ofBatch.size());
  for (int64_t batch : ofBatch)
    for (int64_t rank : ofRank)
      values.push_back(known[size_t(batch + rank)]);
  if (std::equal(values.begin() + ranks, values.end(), values.begin()))
    values.resize(size_t(ranks)); // value[i + R] == value[i] throughout: the same in every micro-batch
  return result;
}

std::vector<std::string> Tables::allAxes() const {
  std::vector<std::string> names;
  for (const dist::Mesh::Axis &axis : fullMesh.axes)
    names.push_back(axis.name);
  return names;
}

plan::Slice Tables::slice(const dist::Sharding &sharding) const {
  plan::Slice slice;
  for (const dist::DimSharding &dim : sharding.dims)
    for (const dist::SubDim &sub : dim) {
      slice.view.push_back(sub.size);
      slice.start.push_back(table(sub.axes, [&](const auto &at) { return dist::heldDigits(sub, fullMesh, at).start; }));
      slice.extent.push_back(table(sub.axes, [&](const auto &at) { return dist::heldDigits(sub, fullMesh, at).extent; }));
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
  std::vector<std::string> cut = dist::cutAxes(sharding), whole;
  llvm::copy_if(allAxes(), std::back_inserter(whole), [&](const std::string &axis) { return !llvm::is_contained(cut, axis); });
  return table(whole, [&](const std::vector<int64_t> &at) -> int64_t {
    return llvm::all_of(whole, [&](const std::string &name) {
      int index = fullMesh.index(name);
      const dist::Mesh::Axis &axis = fullMesh.axes[index];
      return at[index] == (atEnd && isMicroBatch(axis) ? axis.size - 1 : 0);
    });
  });
}

plan::ByCoord Tables::permuteSource(const dist::ReshardStep &step) const {
  return table(allAxes(), [&](const std::vector<int64_t> &at) {
    std::vector<int64_t> source = dist::permuteSource(step, fullMesh, at);
    int64_t position = 0;
    for (const std::string &axis : step.axes)
      position = position * fullMesh.size(axis) + source[size_t(fullMesh.index(axis))];
    return position;
  });
}

plan::ByCoord Tables::permuteSource(dist::RawPermuteOp op) const {
  std::vector<std::string> along = {op.getAxis().str()};
  if (op.getSkew())
    along.push_back(op.getSkew()->str());
  return table(along, [&](const std::vector<int64_t> &at) { return op.sourceOf(fullMesh, at); });
}

} // namespace hpc
