// Reading a list of sub-dims as cuts and writing cuts as the coarsest list of sub-dims.
// Writing is canonical because it looks at nothing but the numbers of the cuts.
#include "compiler/Dialect/Dist/ShardingCuts.h"

#include "runtime/base/IntegerMath.h"

#include <algorithm>
#include <numeric>

namespace hpc::dist {

CutDim readCuts(const DimSharding &dim, const Mesh &mesh) {
  CutDim result;
  result.size = globalSize(dim);
  if (result.size == 0) // nothing is held anywhere
    return result;
  int64_t weight = result.size; // of the digit of the sub-dim at hand
  for (const SubDim &sub : dim) {
    weight /= sub.size;
    int64_t block = sub.size;
    for (const std::string &axis : sub.axes) {
      int64_t k = mesh.size(axis);
      if (k == 1)
        continue;
      if (block == 1) {
        result.pinned.push_back(axis);
        continue;
      }
      int64_t next = ceilDiv(block, k);
      result.cuts.push_back({axis, k, block * weight, next * weight});
      block = next;
    }
  }
  std::sort(result.pinned.begin(), result.pinned.end(),
            [&](const std::string &a, const std::string &b) { return mesh.index(a) < mesh.index(b); });
  return result;
}

/// Whether cuts [first, last), nested in one run, are what their axes do to a sub-dim whose digit weighs `weight`.
static bool nests(const Cut *first, const Cut *last, int64_t weight) {
  if (first->period % weight != 0)
    return false;
  int64_t block = first->period / weight;
  for (; first != last; ++first) {
    block = ceilDiv(block, first->k);
    if (block * weight != first->block)
      return false;
  }
  return true;
}

static SubDim cutSubDim(const Cut *first, const Cut *last, int64_t weight) {
  SubDim sub{first->period / weight, {}};
  for (; first != last; ++first)
    sub.axes.push_back(first->axis);
  return sub;
}

/// Writes cuts each of which cuts the block of the one before; what follows has periods of `base`. In this order:
///   one sub-dim down to `base`:                       40@(X, Y)
///   one sub-dim and an uncut rest, as small as can be: (3@X, 6) and not (9@X, 2), which holds the same over X=4
///   the most axes that fit in a sub-dim of block 1, then the others in its weight: (3@X, 5@Y)
static bool writeNested(const Cut *first, const Cut *last, int64_t base, DimSharding &dim) {
  while (first != last) {
    int64_t common = first->period;
    for (const Cut *cut = first; cut != last; ++cut)
      common = std::gcd(common, cut->block);
    if (common % base != 0)
      return false;
    for (int64_t weight : {base, common})
      if (nests(first, last, weight)) {
        dim.push_back(cutSubDim(first, last, weight));
        if (weight != base)
          dim.push_back({weight / base, {}});
        return true;
      }
    const Cut *split = last - 1;
    while (split != first && !nests(first, split, split[-1].block))
      --split;
    if (split == first)
      return false;
    dim.push_back(cutSubDim(first, split, split[-1].block));
    first = split;
  }
  return true;
}

bool writeCuts(const std::vector<Cut> &cuts, int64_t size, int64_t unit, DimSharding &dim) {
  dim.clear();
  if (size % unit != 0)
    return false;
  int64_t period = size; // what is written has consumed all digits of this weight and more
  const Cut *cut = cuts.data(), *end = cut + cuts.size();
  while (cut != end) {
    if (cut->period !=
        period) { // only the first can have uncut digits before it: the others' are inside the block before
      if (period % cut->period != 0)
        return false;
      dim.push_back({period / cut->period, {}});
    }
    const Cut *last = cut + 1;
    while (last != end && last->period == last[-1].block)
      ++last;
    period = last == end ? unit : last->period;
    if (!writeNested(cut, last, period, dim))
      return false;
    cut = last;
  }
  if (cuts.empty() && period != unit)
    dim.push_back({period / unit, {}});
  return true;
}

int placeForPinned(const DimSharding &dim, const Mesh &mesh) {
  for (size_t i = 0; i < dim.size(); ++i)
    if (!dim[i].axes.empty() && boxSize(dim[i], mesh) == 1)
      return int(i);
  return -1;
}

} // namespace hpc::dist
