// Where the batch goes in a serial program: to every dim whose major factor comes from the batch dim of an input.
#pragma once

#include "compiler/Dialect/NN/BatchDims.h"

namespace hpc::nn {

class BatchFlow {
public:
  /// `batchDims`: as findBatchDims gives them.
  BatchFlow(func::FuncOp function, ArrayRef<std::optional<int64_t>> batchDims);

  /// Ops in program order. Whether the op reads a part of the batch, as each micro-batch has its own.
  bool visit(Operation *op);

  bool carries(Value value, int64_t dim) const { return carriers.contains({value, dim}); }
  /// The size of the batch as the dim's major factor; 0 where the dim does not carry the batch.
  int64_t size(Value value, int64_t dim) const { return carriers.lookup({value, dim}); }
  /// A number of the whole batch, or what is made of such.
  bool isTotal(Value value) const { return totals.contains(value); }

  /// `next` replaces `old`, has its shape, and takes over its facts.
  void replace(Value old, Value next);

private:
  llvm::DenseMap<std::pair<Value, int64_t>, int64_t> carriers; ///< to sizes
  llvm::DenseSet<Value> totals;
};

} // namespace hpc::nn
