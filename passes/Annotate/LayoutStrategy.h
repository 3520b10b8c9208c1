// How tensors lie on the ranks of the tensor axes: a strategy turns a program into seeds. It changes no op and inserts no
// collective; propagation and partition find all that follows from its seeds.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "passes/Annotate/DimTrace.h"

namespace hpc {

/// One dim of a value: `piece` of it is cut over the axes, outermost first. Without axes, nobody may cut the dim.
struct DimCut {
  unsigned dim = 0;
  Piece piece = {};
  std::vector<std::string> axes = {};
};

/// What a strategy wants of a value. Dims without a cut are open to others.
struct LayoutSeed {
  Value value;
  SmallVector<DimCut, 2> cuts;
};

/// What strategies read. The user goes first: who seeds a weight that the user has cut is not heard.
struct LayoutProgram {
  func::FuncOp function;
  dist::Mesh mesh;
  std::vector<std::string> axes; ///< tensor axes of more than one rank, outermost first
  nn::Origins origins;

  /// Ranks of the axes.
  int64_t degree() const;
  /// The user's rules for the parameters that a weight is, or is made of (a reshaped kernel of a convolution).
  SmallVector<dist::Seed> userSeeds(Value weight) const;
  /// Whether these rules allow such a cut of a weight.
  bool mayCut(Value weight, const DimCut &cut) const;
};

struct LayoutStrategy {
  const char *name;
  /// The first seed of a value counts.
  std::vector<LayoutSeed> (*seeds)(const LayoutProgram &program);
};

/// All strategies (README.md, "Adding a layout").
ArrayRef<LayoutStrategy> layoutStrategies();

/// The sharding of a dim of `size` elements.
dist::DimSharding dimSharding(int64_t size, const DimCut &cut);

} // namespace hpc
