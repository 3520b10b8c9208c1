// The loop nest of a region: rows (all dims of the root shape but the last), and what is done once per row.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

struct RegionShape {
  SmallVector<int64_t> root;
  /// Reductions over the last dim of a value of root shape, and composites along it, in program order.
  SmallVector<Operation *> rowOps;

  ArrayRef<int64_t> outer() const { return ArrayRef<int64_t>(root).drop_back(root.empty() ? 0 : 1); }
  int64_t columns() const { return root.empty() ? 1 : root.back(); }
  int64_t rows() const {
    int64_t rows = 1;
    for (int64_t size : outer())
      rows *= size;
    return rows;
  }
  /// Whether `shape` is the root shape with last dim 1: one element a row.
  bool isRowShape(ArrayRef<int64_t> shape) const;
};

/// Whether an op combines elements of its operand: a reduction, or a composite that generated code computes whole.
bool combinesElements(Operation *op);

/// The loop nest that computes `results` in one go, given the combining ops among their producers; nothing when no nest
/// does: every result must have the root shape or its row shape.
std::optional<RegionShape> findRegionShape(ArrayRef<Value> results, ArrayRef<Operation *> combining);
/// Of an existing region.
std::optional<RegionShape> findRegionShape(nn::FusedOp region);

/// Whether two regions compute the same on the same types, whatever their symbols, locations and marks (hpc.id): then
/// one kernel serves both.
bool areEqual(nn::FusedOp a, nn::FusedOp b);

} // namespace hpc::kernels
