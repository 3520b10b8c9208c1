// Degrees of parallelism from what the flags and the sidecar's mesh say; flags win.
#pragma once

#include "compiler/Sidecar/Sidecar.h"
#include "passes/Options.h"

namespace hpc {

/// Flags that were given; each from 1 to 65536.
struct GivenDegrees {
  std::optional<int64_t> tp, pp, dp, devices, microBatches;
};

/// Fills in tp, pp, dp and microBatches. dp follows from --devices where no flag gives it, else from the mesh.
/// Errors (usage): degrees that do not multiply to --devices.
Status resolveDegrees(const GivenDegrees &given, const SidecarMesh &mesh, Options &options);

} // namespace hpc
