// What a pipeline computes once, and what every stage may compute for itself.
//
// The trunk is everything behind a product: it is computed in one stage and sent where else it is read. What has no
// product in its cone (positions, masks, slopes, a bias that all layers share, a lookup in a small table) is cheap to
// repeat and is cloned into each stage that reads it; so are weights and what is made of weights alone.
// Places to cut are those of the graph itself: gradients and updates follow it (StepParts.h).
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

struct Trunk {
  std::vector<Operation *> ops;   ///< of the graph and the loss, in program order
  std::vector<Operation *> later; ///< gradients, updates, and what else reads them, in program order
  std::vector<size_t> products; ///< positions in `ops` of the products with a weight
  /// Before each position of `ops`: the number of values that earlier ones make and later ones of `ops` read, and their
  /// bytes.
  std::vector<int64_t> crossing, crossingBytes;
};

/// Whether an op only shows its one operand in another way or in another type: where the operand is, its result need not be sent.
bool isCopy(Operation *op);

/// Of a single-block function.
Trunk findTrunk(func::FuncOp function);

} // namespace hpc
