// Seconds and collectives of a propagated program as it is, by the same costs as the layout problem: what the compilation makes of a choice.
#pragma once

#include "passes/Search/LayoutCosts.h"

namespace hpc::search {

struct LayoutPrice {
  double seconds = 0;
  std::vector<LayoutCollective> collectives; ///< in program order
};

/// `propagated` has been through phase propagate, on the mesh of `costs`; the passes of partition before reshards are run on it. Errors (internal):
/// one of them fails.
Expected<LayoutPrice> priceOf(ModuleOp propagated, LayoutCosts &costs);

} // namespace hpc::search
