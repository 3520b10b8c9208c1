// Regrouping the digits of a dim: what a reshape that splits a dim makes of its sharding. Merging dims is
// concatenation. A cut belongs to the group in which its period lies, and must deal out whole digits of that group.
#include "compiler/Dialect/Dist/ShardingCuts.h"

namespace hpc::dist {

/// Pinned axes go where they are natural: a group that can take them in, else one of size 1 (a batch of 1 over dp),
/// else the last.
static bool placePinned(const std::vector<std::string> &pinned, const std::vector<int64_t> &sizes, const Mesh &mesh,
                        std::vector<DimSharding> &groups) {
  if (pinned.empty())
    return true;
  if (groups.empty())
    return false;
  for (DimSharding &group : groups)
    if (int place = placeForPinned(group, mesh); place >= 0) {
      group[place].axes.insert(group[place].axes.end(), pinned.begin(), pinned.end());
      return true;
    }
  size_t g = 0;
  while (g + 1 < groups.size() && sizes[g] != 1)
    ++g;
  groups[g].insert(groups[g].begin(), SubDim{1, pinned});
  return true;
}

bool splitAt(const DimSharding &dim, const std::vector<int64_t> &sizes, const Mesh &mesh,
             std::vector<DimSharding> &groups) {
  groups.clear();
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  if (product != globalSize(dim))
    return false;
  if (product == 0) { // nothing is held anywhere
    groups = replicated(sizes).dims;
    return true;
  }
  CutDim cuts = readCuts(dim, mesh);
  auto cut = cuts.cuts.begin();
  int64_t weight = cuts.size; // of the group before
  for (int64_t size : sizes) {
    int64_t above = weight;
    weight /= size;
    std::vector<Cut> own;
    for (; cut != cuts.cuts.end() && cut->period > weight; ++cut)
      own.push_back(*cut);
    if (!writeCuts(own, above, weight, groups.emplace_back())) {
      groups.clear();
      return false;
    }
  }
  return placePinned(cuts.pinned, sizes, mesh, groups);
}

} // namespace hpc::dist
