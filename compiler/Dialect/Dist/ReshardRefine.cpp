// Finds the common list of sub-dims of two shardings of a dim by splitting each at the boundaries of the other.
// Boundaries are weights: (3, 5@tp, 8) has the boundaries 40 and 8.
#include "compiler/Dialect/Dist/ReshardRefine.h"

#include "compiler/Dialect/Dist/ShardingCuts.h"

#include <algorithm>
#include <functional>
#include <set>

namespace hpc::dist {

using Boundaries = std::set<int64_t, std::greater<int64_t>>;

static Boundaries boundaries(const DimSharding &dim) {
  Boundaries result;
  int64_t weight = globalSize(dim);
  for (const SubDim &sub : dim)
    result.insert(weight /= sub.size);
  return result;
}

/// The sizes between boundaries; empty when one boundary does not divide the one above.
static std::vector<int64_t> sizesBetween(int64_t size, const Boundaries &weights) {
  std::vector<int64_t> sizes;
  for (int64_t weight : weights) {
    if (size % weight != 0)
      return {};
    sizes.push_back(size / weight);
    size = weight;
  }
  return sizes;
}

/// Splits `dim` at `sizes`, and replaces `sizes` by those of the sub-dims that come out, which may be more.
static bool splitFlat(const DimSharding &dim, std::vector<int64_t> &sizes, const Mesh &mesh, DimSharding &flat) {
  std::vector<DimSharding> groups;
  if (!splitAt(dim, sizes, mesh, groups))
    return false;
  flat.clear();
  for (const DimSharding &group : groups)
    flat.insert(flat.end(), group.begin(), group.end());
  sizes.clear();
  for (const SubDim &sub : flat)
    sizes.push_back(sub.size);
  return true;
}

/// Splits both until the sizes that one needs are the sizes that the other needs. Each round makes the list longer or
/// ends.
static bool splitBoth(std::vector<int64_t> sizes, DimSharding &current, DimSharding &goal, const Mesh &mesh) {
  DimSharding flatCurrent, flatGoal;
  std::vector<int64_t> before;
  do {
    if (!splitFlat(current, sizes, mesh, flatCurrent))
      return false;
    before = sizes;
    if (!splitFlat(goal, sizes, mesh, flatGoal))
      return false;
  } while (sizes != before);
  current = flatCurrent;
  goal = flatGoal;
  return true;
}

/// Takes the pinned axes out of a dim.
static std::vector<std::string> takePinned(DimSharding &dim, const Mesh &mesh) {
  CutDim cuts = readCuts(dim, mesh);
  if (!cuts.pinned.empty())
    writeCuts(cuts.cuts, cuts.size, 1, dim);
  return cuts.pinned;
}

bool refine(DimSharding &current, DimSharding &goal, const Mesh &mesh) {
  DimSharding newCurrent = normalize(current, mesh), newGoal = normalize(goal, mesh);
  int64_t size = globalSize(newCurrent);
  if (size != 0) {
    std::vector<std::string> pinned = takePinned(newCurrent, mesh), pinnedGoal = takePinned(newGoal, mesh);
    Boundaries own = boundaries(newCurrent), its = boundaries(newGoal), all = own;
    all.insert(its.begin(), its.end());
    if (!splitBoth(sizesBetween(size, all), newCurrent, newGoal, mesh) &&
        !splitBoth(sizesBetween(size, its), newCurrent, newGoal, mesh) &&
        !splitBoth(sizesBetween(size, own), newCurrent, newGoal, mesh))
      return false;
    if (!pinned.empty() || !pinnedGoal.empty()) {
      // Axes of both come first, so that the rest can be moved.
      auto sharedFirst = [&](std::vector<std::string> &axes, const std::vector<std::string> &other) {
        auto key = [&](const std::string &axis) {
          return std::make_pair(std::find(other.begin(), other.end(), axis) == other.end(), mesh.index(axis));
        };
        std::sort(axes.begin(), axes.end(), [&](const auto &a, const auto &b) { return key(a) < key(b); });
      };
      std::vector<std::string> before = pinned;
      sharedFirst(pinned, pinnedGoal);
      sharedFirst(pinnedGoal, before);
      newCurrent.insert(newCurrent.begin(), SubDim{1, pinned});
      newGoal.insert(newGoal.begin(), SubDim{1, pinnedGoal});
    }
  }
  current = newCurrent;
  goal = newGoal;
  return true;
}

} // namespace hpc::dist
