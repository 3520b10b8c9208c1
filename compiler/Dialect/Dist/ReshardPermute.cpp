// Matches the boxes before a permutation with those after it.
// Equal boxes imply an equal layout, since coordinate 0 holds a full box. Several ranks may hold the same box, or
// nothing; the n-th that wants one takes it from the n-th that has it.
#include "compiler/Dialect/Dist/ReshardPermute.h"

#include <algorithm>
#include <cassert>

namespace hpc::dist {

/// Start and extent for each sub-dim; empty for a box without elements.
using Box = std::vector<int64_t>;

static Box boxAt(const Sharding &sharding, const Mesh &mesh, const std::vector<int64_t> &coordinate) {
  Box box;
  for (const DimSharding &dim : sharding.dims)
    for (const SubDim &sub : dim) {
      Range held = heldDigits(sub, mesh, coordinate);
      if (held.extent == 0)
        return {};
      box.push_back(held.start);
      box.push_back(held.extent);
    }
  return box;
}

/// All coordinates that differ from `coordinate` in `axes` only.
static std::vector<std::vector<int64_t>> peers(const std::vector<std::string> &axes, const Mesh &mesh,
                                               std::vector<int64_t> coordinate) {
  std::vector<std::vector<int64_t>> result = {coordinate};
  for (const std::string &axis : axes) {
    std::vector<std::vector<int64_t>> more;
    for (std::vector<int64_t> peer : result)
      for (peer[mesh.index(axis)] = 0; peer[mesh.index(axis)] < mesh.size(axis); ++peer[mesh.index(axis)])
        more.push_back(peer);
    result = std::move(more);
  }
  return result;
}

bool isPermutation(const Sharding &before, const Sharding &after, const std::vector<std::string> &axes,
                   const Mesh &mesh) {
  for (int64_t rank = 0; rank < mesh.numCoordinates(); ++rank) {
    std::vector<int64_t> coordinate = mesh.coordinate(rank);
    if (std::any_of(axes.begin(), axes.end(),
                    [&](const std::string &axis) { return coordinate[mesh.index(axis)] != 0; }))
      continue; // one rank of each group asks
    std::vector<Box> has, wants;
    for (const std::vector<int64_t> &peer : peers(axes, mesh, coordinate)) {
      has.push_back(boxAt(before, mesh, peer));
      wants.push_back(boxAt(after, mesh, peer));
    }
    std::sort(has.begin(), has.end());
    std::sort(wants.begin(), wants.end());
    if (has != wants)
      return false;
  }
  return true;
}

std::vector<int64_t> permuteSource(const ReshardStep &step, const Mesh &mesh, const std::vector<int64_t> &coordinate) {
  Box wanted = boxAt(step.after, mesh, coordinate);
  int64_t ahead = 0; // ranks before this one that want the same box
  auto group = peers(step.axes, mesh, coordinate);
  for (size_t i = 0; group[i] != coordinate; ++i)
    ahead += boxAt(step.after, mesh, group[i]) == wanted;
  for (const std::vector<int64_t> &peer : group)
    if (boxAt(step.before, mesh, peer) == wanted && ahead-- == 0)
      return peer;
  assert(false && "planReshard only makes permutations that exchange whole boxes");
  return coordinate;
}

} // namespace hpc::dist
