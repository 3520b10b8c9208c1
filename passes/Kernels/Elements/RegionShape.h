// The loop nest of a region: rows (all dims of the root shape but the last), what is done once per row, and sums down the
// rows of a block.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

/// A sum over leading dims of a value of root shape, as the gradients of biases and norms are: [64, 32, C] -> [64, 1, C]
/// adds up blocks of 32 rows. It is taken in where the rows are computed, so that nobody reads them again for it.
struct ColumnSum {
  nn::ReduceOp op;
  Value term;   ///< what it adds up: its operand, without reshapes where that has root shape; row-major it is the root
  int64_t rows; ///< of a block: an element of the result is the sum of as many, which follow each other
};

/// `op` as a sum of rows of the root shape, if it is one that can be added up where its result lies: of numbers that
/// registers hold as memory does.
std::optional<ColumnSum> findColumnSum(Operation *op, ArrayRef<int64_t> root);

struct RegionShape {
  SmallVector<int64_t> root;
  /// Reductions over the last dim of a value of root shape, and composites along it, in program order.
  SmallVector<Operation *> rowOps;
  /// Results that are sums of rows, all of blocks of `rowsOfItem` rows.
  SmallVector<ColumnSum> columnSums;
  int64_t rowsOfItem = 1;

  ArrayRef<int64_t> outer() const { return ArrayRef<int64_t>(root).drop_back(root.empty() ? 0 : 1); }
  int64_t columns() const { return root.empty() ? 1 : root.back(); }
  int64_t rows() const {
    int64_t rows = 1;
    for (int64_t size : outer())
      rows *= size;
    return rows;
  }
  /// What is independent: rows, or blocks of them whose sums are results.
  int64_t items() const { return rows() / rowsOfItem; }
  /// Whether `shape` is the root shape with last dim 1: one element a row.
  bool isRowShape(ArrayRef<int64_t> shape) const;
  bool isColumnSum(Value value) const {
    return llvm::any_of(columnSums, [&](ColumnSum sum) { return sum.op.getResult() == value; });
  }
};

/// Whether an op combines elements of its operand: a reduction, or a composite that generated code computes whole.
bool combinesElements(Operation *op);

/// The loop nest that computes `results` in one go, given the combining ops among their producers; nothing when no nest
/// does: every result must have the root shape or its row shape, or be a sum of the root's rows.
std::optional<RegionShape> findRegionShape(ArrayRef<Value> results, ArrayRef<Operation *> combining);
/// Of an existing region.
std::optional<RegionShape> findRegionShape(nn::FusedOp region);

/// Whether two regions compute the same on the same types, whatever their symbols, locations and marks (hpc.id): then
/// one kernel serves both.
bool areEqual(nn::FusedOp a, nn::FusedOp b);

} // namespace hpc::kernels
