// The ops that a pipeline computes once, and those that every stage may repeat.
//
// The trunk is everything after a product: it is computed in one stage and sent to the others that read it. Values that
// depend on no product (positions, masks, slopes, a bias that all layers share, a lookup in a small table) are cheap to
// repeat and are cloned into each stage that reads them; so are weights and values computed from weights alone.
// Places to cut are those of the graph itself: gradients and updates follow it (StepParts.h).
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

struct Trunk {
  std::vector<Operation *> ops;   ///< of the graph and the loss, in program order
  std::vector<Operation *> later; ///< gradients, updates, and other ops that read them, in program order
  std::vector<size_t> products; ///< positions in `ops` of the products with a weight
  /// Before each position of `ops`: the number of values that earlier ones make and later ones of `ops` read, and their
  /// bytes.
  std::vector<int64_t> crossing, crossingBytes;
};

/// Whether an op only shows its one operand in another way or in another type: where the operand is, its result need not be sent.
bool isCopy(Operation *op);

/// The function has one block.
Trunk findTrunk(func::FuncOp function);

} // namespace hpc
