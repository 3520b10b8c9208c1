// Rewrites that are always valid, for passes whose results contain views and transposes.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

void populateSimplifyPatterns(RewritePatternSet &patterns);

/// Applies patterns to every function until nothing changes. Constants stay where they are, with their locations.
LogicalResult rewriteToTheEnd(ModuleOp module, RewritePatternSet &&patterns);

} // namespace hpc
