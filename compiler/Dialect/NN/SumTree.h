// Sums as trees of adds of one type, and of muls that scale a part of one. Terms of one tree that are partial over the same
// axes share one all-reduce: layouts are chosen for it, and hpc-collect-partials makes it so, both by these trees.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

/// A term, and what scales it: the muls on the way up, innermost first, each with the operand that leads down.
struct SumTerm {
  Value value;
  SmallVector<std::pair<MulOp, unsigned>> scales;
};

struct SumTree {
  SmallVector<SumTerm> terms;   ///< left to right
  SmallVector<Operation *> ops; ///< adds and muls, the root first, every op before those below it
};

/// The tree that ends in `root`, which may be as deep as the program. Muls that are none of `scaling` are terms.
SumTree sumTree(AddOp root, const llvm::DenseSet<Operation *> &scaling);

/// The op of the same tree that reads an add or a mul of it; null where there is none, as for its root.
Operation *aboveInSum(Operation *op);

/// Whether a partial term of a sum of such a shape is added to others before it is all-reduced. Where another op than an add
/// reads it, as the norm does that reads a residual, it is there for the sum anyway.
bool isCollected(Value term, ArrayRef<int64_t> shape);

/// The roots of the sums of which `value`, were it partial, is such a term. Views and scales lead there: a bias that is added
/// on the way is full, so it may be another term of the tree but nothing else.
SmallVector<Operation *, 1> sumsOf(Value value);

} // namespace hpc::nn
