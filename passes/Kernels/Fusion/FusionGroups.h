// Finds the ops of a block that share a region: producers join consumers as long as one loop nest computes them all.
#pragma once

#include "passes/Kernels/Elements/RegionShape.h"
#include "passes/Kernels/Fusion/FusionRoles.h"

namespace hpc::kernels {

struct FusionGroup {
  SmallVector<Operation *> ops;      ///< in program order
  DenseSet<Operation *> members;     ///< the same
  /// Aliases between members that the region computes through, and aliases of its operands before a sum of rows, in
  /// program order.
  SmallVector<Operation *> reshapes;

  bool contains(Operation *op) const { return members.contains(op) || llvm::is_contained(reshapes, op); }
  /// Values of members that are read outside, in program order.
  SmallVector<Value> results() const;
};

/// The groups of a block, in the order of their first op.
std::vector<FusionGroup> formGroups(Block &block, const FusionRoles &roles);

} // namespace hpc::kernels
