// Where a program can be cut into stages, found from its structure alone.
//
// The trunk is what depends on both inputs and weights. All else is cheap to repeat: weights and what is made of them
// alone, masks and the like made of inputs alone. A cut is possible between two trunk ops when exactly one trunk value
// crosses. The ops between two neighbouring cuts are a segment; a run of segments that repeats (a transformer's layers)
// gives the blocks.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

struct Blocks {
  std::vector<Operation *> trunk; ///< in program order
  std::vector<size_t> firstOp;    ///< of every block, index into `trunk`; the first is 0
  std::vector<double> cost;       ///< floating-point operations of every block
  size_t size() const { return firstOp.size(); }
};

/// Finds the blocks of a single-block function.
Blocks findBlocks(func::FuncOp function);

/// How many blocks every stage gets: `split` is "uniform", "balanced" (the largest stage costs as little as possible;
/// ties go to even counts of blocks) or a list of numbers. Null on an error, which is emitted at `function`.
std::optional<std::vector<size_t>> chooseSplit(func::FuncOp function, const Blocks &blocks, int64_t stages,
                                               StringRef split);

} // namespace hpc
