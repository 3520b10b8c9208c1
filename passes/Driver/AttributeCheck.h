// Attributes that passes keep on ops beside what the ops define: what a file may hold of them. Passes take one that they cannot read for absent, so a file
// is checked when it is read.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

/// Errors at the op: an attribute of ours (hpc., nn., dist., pipe.) that no pass knows, or that has another type than the one that passes write.
LogicalResult verifyAttributes(ModuleOp module);

} // namespace hpc
