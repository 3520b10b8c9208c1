// The role of each op of a block in the formation of regions.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

enum class FusionRole {
  Fixed,  ///< stays: library calls, parameters, collectives, transfers, terminators
  Alias,  ///< a reshape: the same buffer under another shape, unless a region computes through it
  Cloned, ///< costs nothing to compute again: cloned into every region that reads it (constants, iotas, masks, views of
          ///< buffers, a buffer times a number)
  Grouped, ///< computed once, in one region
};

struct FusionRoles {
  DenseMap<Operation *, FusionRole> roles;
  /// Cloned ops that something outside the regions reads: they get a region of their own as well.
  DenseSet<Operation *> materialized;

  explicit FusionRoles(Block &block);
  FusionRole of(Operation *op) const {
    auto found = roles.find(op);
    return found == roles.end() ? FusionRole::Fixed : found->second;
  }
};

/// More than a few instructions an element; never pulled several times if that can be helped.
bool isExpensive(Operation *op);
/// Moves elements, each at most once, and computes nothing (Access::Move).
bool isMove(Operation *op);
/// The same buffer under another shape (Access::Alias).
bool isAlias(Operation *op);
/// Whether the inner loop over an alias's result runs through its operand without a division: [2, 66] -> [2, 33, 2]
/// does, the inverse does not.
bool keepsRows(Operation *alias);
/// A fill_tail that lower turns into the exact contraction extents of the matmuls that read it.
bool isExactExtent(dist::FillTailOp op);

} // namespace hpc::kernels
