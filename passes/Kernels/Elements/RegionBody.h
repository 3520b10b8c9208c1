// The computation of a region, as loops of a target.
#pragma once

#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Elements/RegionShape.h"

namespace hpc::kernels {

/// Whether every op of the region has code, for any target; if not, with a diagnostic at the op.
LogicalResult checkOps(nn::FusedOp region);
/// Erases quotients and remainders that were joined again, and ops that only they read.
void eraseDeadOps(func::FuncOp function);

/// Computes all results into `outputs`, the items that the emitter's loop nest gives to this call. Fails when the
/// results have no common loop nest.
LogicalResult emitBody(ElementEmitter &emitter, nn::FusedOp region, ValueRange outputs);

/// The parts of an item's code, on any target.
struct BodyEmitter {
  nn::FusedOp region;
  ElementEmitter &emitter;
  IndexBuilder &indices;
  ScalarBuilder &registers;
  ValueRange yielded, outputs;

  BodyEmitter(nn::FusedOp region, ElementEmitter &emitter, ValueRange outputs)
      : region(region), emitter(emitter), indices(emitter.index()), registers(emitter.registers()),
        yielded(region.getBody().front().getTerminator()->getOperands()), outputs(outputs) {}

  /// Stores the chosen results at an index.
  void storeAll(const Index &at, const IndexExpr &linear, function_ref<bool(Value)> isChosen);
  /// A row of the root shape; of a region with sums of rows the rows of a block, and their sums.
  void emitItem(const RegionShape &shape, const IndexExpr &item);

private:
  void forEachSum(const RegionShape &shape, const IndexExpr &linear, function_ref<Value(size_t, Value)> next);
  /// One row of the root shape, whole, which belongs to `item`.
  void emitRow(const RegionShape &shape, const IndexExpr &row, const IndexExpr &item);
  void emitShiftedSum(const RegionShape &shape, nn::ReduceOp top, const Index &rowElement);
  /// Whether a composite accumulates its row in the result's buffer.
  bool rowIsResult = false;
  std::optional<RowMemory> memoryFor(Operation *op, const RegionShape &shape, const IndexExpr &row,
                                     SmallVector<bool> &taken);
};

} // namespace hpc::kernels
