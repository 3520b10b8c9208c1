// Which ops of a program take one strategy: equal ops of blocks that repeat, and what is computed alike from these.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::search {

/// By op or source (argument, parameter): the first value or op of its class. Found from what ops are and in which order they stand: a sequence with two products
/// or more that repeats is a block, which may be one of gradients; then ops that are equal and read equal values. Parameters and states are
/// equal where equal ops read them.
class LayoutTies {
public:
  explicit LayoutTies(func::FuncOp function);
  Operation *first(Operation *op) const { return ops.lookup(op); }
  Value first(Value source) const;

private:
  void tieBlocks();
  void tieSources();
  void tieEqual();
  Value root(Value source) const;

  func::FuncOp function;
  llvm::DenseMap<Operation *, Operation *> ops; ///< every op but sources; itself where it is the first
  llvm::DenseMap<Value, Value> sources;         ///< those that are not the first of their class
  SmallVector<Operation *> order;
  SmallVector<int> signatures; ///< by `order`: equal for equal ops
};

} // namespace hpc::search
