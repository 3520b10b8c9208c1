// Where a program can be cut into stages, found from its structure alone.
//
// A gap lies between two neighbouring products with weights; its cut is where the fewest bytes cross. A sequence of
// products that repeats (a transformer's layers) gives the blocks, if no more values cross between its repetitions than
// anywhere in the layers beside them; a value that crosses all layers (an encoder's output) crosses cuts too. Without a
// repetition the cuts are the gaps at which no more values cross than at their neighbours, and all gaps where those are
// too few for the requested parts.
#pragma once

#include "passes/Stage/Trunk.h"

namespace hpc {

/// Equal layers that follow each other, as their products show it.
struct LayerRun {
  std::vector<size_t> firstOp; ///< of every layer, index into the trunk's ops
  size_t endOp = 0;            ///< after the last layer
};

struct Blocks {
  Trunk trunk;
  std::vector<size_t> firstOp; ///< of every block, index into the trunk's ops; the first is 0
  std::vector<double> cost;    ///< operations of every block, on a machine with the time that its bytes take
  /// In program order; ops before the first product count as the first layer's, those after the last as the last one's.
  std::vector<LayerRun> layers = {};
  size_t size() const { return firstOp.size(); }
  /// Index of the op after a block's last one.
  size_t endOp(size_t block) const { return block + 1 < size() ? firstOp[block + 1] : trunk.ops.size(); }
};

/// Finds the blocks of a single-block function that is to have `parts` parts.
Blocks findBlocks(func::FuncOp function, size_t parts);

/// As even as `cost` allows: the largest part's is as small as can be, and the first parts take as few blocks as that allows. At least as many blocks as
/// parts.
std::vector<size_t> balancedSplit(ArrayRef<double> cost, size_t parts);

/// How many blocks every part gets; a stage has `chunks` parts. `split` is "uniform", "balanced" (the largest part
/// costs as little as possible; the first parts take as few blocks as that allows) or a list of numbers. Null on an
/// error, which is emitted at `function`.
std::optional<std::vector<size_t>> chooseSplit(func::FuncOp function, const Blocks &blocks, int64_t stages,
                                               int64_t chunks, StringRef split);

} // namespace hpc
