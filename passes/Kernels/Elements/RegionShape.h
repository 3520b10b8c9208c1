// The loop nest of a region: rows (all dims of the root shape but the last), ops that run once per row, and sums down
// the rows of a block.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

/// A sum over leading dims of a value of root shape, as the gradients of biases and norms are: [64, 32, C] -> [64, 1,
/// C] adds up blocks of 32 rows. It is computed together with the rows, so that they are not read again for it.
struct ColumnSum {
  nn::ReduceOp op;
  Value term;   ///< its operand, without reshapes if that has root shape; row-major it is the root
  int64_t rows; ///< of a block: an element of the result is the sum of so many consecutive rows
};

/// `op` as a sum of rows of the root shape, if it is one that can be accumulated in its result: its type in memory must
/// be as wide as in registers.
std::optional<ColumnSum> findColumnSum(Operation *op, ArrayRef<int64_t> root);

/// The elements of a result that a region computes: of nn.update_slice, which a region writes over its state, the rows.
ArrayRef<int64_t> computedShape(Value result);

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
  /// The independent units: rows, or blocks of rows whose sums are results.
  int64_t items() const { return rows() / rowsOfItem; }
  /// Whether `shape` is the root shape with last dim 1: one element a row.
  bool isRowShape(ArrayRef<int64_t> shape) const;
  bool isColumnSum(Value value) const {
    return llvm::any_of(columnSums, [&](ColumnSum sum) { return sum.op.getResult() == value; });
  }
};

/// Whether an op combines elements of its operand: a reduction, or a composite that generated code computes whole.
bool combinesElements(Operation *op);

/// The loop nest that computes `results` in one pass, given the combining ops among their producers; nullopt if no nest
/// does: every result must have the root shape or its row shape, or be a sum of the root's rows.
std::optional<RegionShape> findRegionShape(ArrayRef<Value> results, ArrayRef<Operation *> combining);
/// Of an existing region.
std::optional<RegionShape> findRegionShape(nn::FusedOp region);

/// Whether two regions compute the same on the same types, whatever their symbols, locations and ids (hpc.id): then one
/// kernel serves both.
bool areEqual(nn::FusedOp a, nn::FusedOp b);

} // namespace hpc::kernels
