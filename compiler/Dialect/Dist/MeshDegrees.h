// Degrees of a plan: over how many ranks, stages and micro-batches it is dealt out, as an ordered list of axes. One table,
// axisKinds, says which axes there are; flags, sidecars, ONNX annotations, the mesh and all who write degrees read it.
#pragma once

#include "compiler/Dialect/Dist/Sharding.h"

#include <map>
#include <optional>

namespace hpc::dist {

struct AxisKind {
  const char *name; ///< in meshes, shardings, sidecars
  AxisRole role;
  const char *flag; ///< of hpc-opt, without the dashes
  const char *help;
};
/// The axes that a plan may have, outermost first (stages stand outside of all, see Dialect/Pipe).
const std::vector<AxisKind> &axisKinds();

/// The names that layouts give to the axes which take the place of a kind: tp.x, tp.y, tp.z for the tensor axis.
std::vector<std::string> ownAxes(const AxisKind &kind);

constexpr int64_t maxDegree = 65536;

/// Sizes by name of axis, of those that somebody gives; each from 1 to maxDegree.
using GivenSizes = std::map<std::string, int64_t, std::less<>>;

/// One axis a kind, of size 1 where none is given.
Mesh degreesOf(const GivenSizes &sizes = {});
/// The product of all sizes but time's.
int64_t ranksOf(const Mesh &degrees);
/// The axes of other roles.
Mesh axesWithout(const Mesh &degrees, AxisRole role);

/// Flags win over a sidecar's mesh. Where there are `devices`, and no flag gives the axis of data, that is as long as they
/// allow. Errors (usage): degrees that do not multiply to the devices, more than `maxRanks`.
Expected<Mesh> resolveDegrees(const GivenSizes &flags, std::optional<int64_t> devices, const GivenSizes &sidecar,
                              int64_t maxRanks);

} // namespace hpc::dist
