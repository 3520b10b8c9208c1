// The meaning of a sharding spelled out as lists of elements, without the code under test. A box is a list of slots; a
// slot holds a global index or -1, which is padding.
#pragma once

#include "compiler/Dialect/Dist/Sharding.h"

#include <functional>

namespace hpc::dist::brute {

using Box = std::vector<int64_t>;

/// The slots of one sub-dim: cut into equal blocks (padded at the end) once for each axis.
inline Box slots(const SubDim &sub, const Mesh &mesh, const std::vector<int64_t> &coordinate) {
  Box held(sub.size);
  for (int64_t i = 0; i < sub.size; ++i)
    held[i] = i;
  for (const std::string &axis : sub.axes)
    for (size_t a = 0; a < mesh.axes.size(); ++a)
      if (mesh.axes[a].name == axis) {
        int64_t block = 0;
        while (block * mesh.axes[a].size < int64_t(held.size()))
          ++block;
        held.resize(block * mesh.axes[a].size, -1);
        held = Box(held.begin() + coordinate[a] * block, held.begin() + (coordinate[a] + 1) * block);
      }
  return held;
}

/// Row-major product of two boxes; the minor one has global size `size`.
inline Box product(const Box &major, const Box &minor, int64_t size) {
  Box result;
  for (int64_t i : major)
    for (int64_t j : minor)
      result.push_back(i < 0 || j < 0 ? -1 : i * size + j);
  return result;
}

inline Box box(const DimSharding &dim, const Mesh &mesh, const std::vector<int64_t> &coordinate) {
  Box result = {0};
  for (const SubDim &sub : dim)
    result = product(result, slots(sub, mesh, coordinate), sub.size);
  return result;
}

inline Box box(const Sharding &sharding, const Mesh &mesh, const std::vector<int64_t> &coordinate) {
  Box result = {0};
  for (const DimSharding &dim : sharding.dims) {
    int64_t size = 1;
    for (const SubDim &sub : dim)
      size *= sub.size;
    result = product(result, box(dim, mesh, coordinate), size);
  }
  return result;
}

/// The boxes of all coordinates, in row-major order of the mesh.
template <typename T> std::vector<Box> boxes(const T &sharding, const Mesh &mesh) {
  std::vector<Box> result;
  for (int64_t rank = 0; rank < mesh.numCoordinates(); ++rank)
    result.push_back(box(sharding, mesh, mesh.coordinate(rank)));
  return result;
}

/// Boxes and size: what two dims have in common when they mean the same. Padding at the end of a box counts.
inline std::vector<Box> meaning(const DimSharding &dim, const Mesh &mesh) {
  std::vector<Box> result = boxes(dim, mesh);
  result.push_back({globalSize(dim)});
  return result;
}

/// Calls `visit` with `subs` under every way of cutting them with axes of the mesh from `axis` on: unused, or put first
/// or last on any sub-dim (so that two axes on one sub-dim come in both orders).
inline void forEachCut(std::vector<SubDim> &subs, const Mesh &mesh, const std::function<void()> &visit,
                       size_t axis = 0) {
  if (axis == mesh.axes.size())
    return visit();
  forEachCut(subs, mesh, visit, axis + 1);
  for (size_t i = 0; i < subs.size(); ++i) {
    std::vector<std::string> &axes = subs[i].axes;
    for (size_t at = 0, places = axes.size(); at <= places; ++at) {
      axes.insert(axes.begin() + at, mesh.axes[axis].name);
      forEachCut(subs, mesh, visit, axis + 1);
      axes.erase(axes.begin() + at);
    }
  }
}

/// Every list of `count` sub-dims of sizes least..most under every cut.
inline void forEachDim(int count, int64_t least, int64_t most, const Mesh &mesh,
                       const std::function<void(const DimSharding &)> &visit) {
  DimSharding dim(count);
  std::function<void(int)> size = [&](int i) {
    if (i == count)
      return forEachCut(dim, mesh, [&] { visit(dim); });
    for (int64_t s = least; s <= most; ++s) {
      dim[i].size = s;
      size(i + 1);
    }
  };
  size(0);
}

inline Mesh mesh(std::vector<int64_t> sizes) {
  static const char *names[] = {"x", "y", "z"};
  Mesh result;
  for (size_t i = 0; i < sizes.size(); ++i)
    result.axes.push_back({names[i], sizes[i]});
  return result;
}

} // namespace hpc::dist::brute
