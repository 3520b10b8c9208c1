// The normal form of a sharding: the coarsest list of sub-dims, equal for equal holdings.
// Pinned axes (see ShardingCuts.h) end the first cut sub-dim of block 1, else they stand before all as `1@axes`.
#include "compiler/Dialect/Dist/ShardingCuts.h"

#include <algorithm>
#include <cassert>

namespace hpc::dist {

DimSharding normalize(const DimSharding &dim, const Mesh &mesh) {
  if (globalSize(dim) == 0)
    return {{0, {}}};
  CutDim cuts = readCuts(dim, mesh);
  DimSharding result;
  bool written = writeCuts(cuts.cuts, cuts.size, 1, result);
  assert(written && "cuts that were read from sub-dims can be written as sub-dims");
  (void)written;
  if (cuts.pinned.empty())
    return result;
  int place = placeForPinned(result, mesh);
  if (place < 0) {
    result.insert(result.begin(), SubDim());
    place = 0;
  }
  std::vector<std::string> &axes = result[place].axes;
  axes.insert(axes.end(), cuts.pinned.begin(), cuts.pinned.end());
  return result;
}

Sharding normalize(const Sharding &sharding, const Mesh &mesh) {
  Sharding result;
  for (const DimSharding &dim : sharding.dims)
    result.dims.push_back(normalize(dim, mesh));
  for (const std::string &axis : sharding.partial)
    if (mesh.size(axis) != 1)
      result.partial.push_back(axis);
  std::sort(result.partial.begin(), result.partial.end());
  return result;
}

} // namespace hpc::dist
