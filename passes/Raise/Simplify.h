// Rewrites that hold everywhere, for the passes that make something new out of views and transposes.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

void populateSimplifyPatterns(RewritePatternSet &patterns);

/// Applies patterns to every function until nothing changes. Constants stay where they are, with their locations.
LogicalResult rewriteToTheEnd(ModuleOp module, RewritePatternSet &&patterns);

} // namespace hpc
