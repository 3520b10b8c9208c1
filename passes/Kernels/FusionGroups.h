// Which ops of a block share a region: producers join their consumers as long as one loop nest computes them all.
#pragma once

#include "passes/Kernels/FusionRoles.h"
#include "passes/Kernels/RegionShape.h"

namespace hpc::kernels {

struct FusionGroup {
  SmallVector<Operation *> ops;      ///< in program order
  DenseSet<Operation *> members;     ///< the same
  SmallVector<Operation *> reshapes; ///< aliases between members that the region computes through, in program order

  bool contains(Operation *op) const { return members.contains(op) || llvm::is_contained(reshapes, op); }
  /// Values of members that are read outside, in program order.
  SmallVector<Value> results() const;
};

/// The groups of a block, in the order of their first op.
std::vector<FusionGroup> formGroups(Block &block, const FusionRoles &roles);

} // namespace hpc::kernels
