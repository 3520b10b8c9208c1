// A quick yes to "does this op follow from that one", by two spanning trees of a block: each op under its last producer,
// and under its first. A no says nothing: the path may run elsewhere.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::kernels {

class Ancestors {
public:
  explicit Ancestors(Block &block);
  /// Whether a tree has a path from `before` to `after`.
  bool isKnownPath(Operation *before, Operation *after) const;

private:
  /// Numbers of a tree's walk: of the op, and behind the last op under it.
  struct Span {
    int begin = 0, end = 0;
  };
  using Tree = DenseMap<Operation *, Span>;
  static Tree makeTree(Block &block, bool ofLast);
  Tree trees[2];
};

} // namespace hpc::kernels
