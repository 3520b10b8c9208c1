// A quick test whether an op follows from another one, by two spanning trees of a block: each op under its last
// producer, and under its first. True is certain; false is not, since a path may run elsewhere.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::kernels {

class Ancestors {
public:
  explicit Ancestors(Block &block);
  /// Whether a tree has a path from `before` to `after`.
  bool isKnownPath(Operation *before, Operation *after) const;

private:
  /// Numbers of a tree's walk: the op's, and one after the last op under it.
  struct Span {
    int begin = 0, end = 0;
  };
  using Tree = DenseMap<Operation *, Span>;
  static Tree makeTree(Block &block, bool ofLast);
  Tree trees[2];
};

} // namespace hpc::kernels
