// From the cuts of a rule to a sharding of one tensor.
#pragma once

#include "compiler/Dialect/Dist/Sharding.h"
#include "compiler/Sidecar/Sidecar.h"

namespace hpc {

/// The sharding, not normalized. `transposed`: the rule speaks of the transpose of this tensor (rank 2).
/// Errors (sidecar): a dim out of range, sizes that do not multiply to the dim, an unknown axis, one that cuts twice,
/// `parts` that are not the axis' size. They begin with what `subject` names.
Expected<dist::Sharding> resolveCuts(const std::vector<SidecarCut> &cuts, const std::vector<int64_t> &shape,
                                     bool transposed, const dist::Mesh &mesh, const std::string &subject);

/// The same sharding of a tensor that has been reshaped; nullopt where a cut is no cut of the new dims.
std::optional<dist::Sharding> reshapedCuts(const dist::Sharding &sharding, const std::vector<int64_t> &shape,
                                           const dist::Mesh &mesh);

/// The inverse of resolveCuts.
std::vector<SidecarCut> cutsOf(const dist::Sharding &sharding);

} // namespace hpc
