// Finds what hpc-panel-products makes in panels: products and scattered sums of products, and which of them go together.
#pragma once

#include "compiler/Panels.h"

namespace hpc::kernels {

/// A product, or one term of a scattered sum. An operand that has the dim of the panels is taken in panels itself (`panels`), or lies whole and is
/// read in parts.
struct PanelTerm {
  mutable nn::MatmulOp product; ///< a handle: asking it something is no change
  std::optional<GatheredValue> panels[2];
};

/// A product that is summed over panels (`dim` is Sum), or a reduce-scatter of a sum of products, each of which gives a panel of the result.
struct PanelUnit {
  Operation *root = nullptr; ///< the product, or the reduce-scatter
  ProductDim dim = ProductDim::Sum;
  std::vector<PanelTerm> terms;
  mutable nn::CastOp rounding; ///< of the terms, before the reduce-scatter; or null
  /// How the dim is cut in panels. The rank whose coordinates along `axes` add up to s has panel s + t at step t.
  dist::DimSharding cut;
  std::vector<std::string> axes; ///< one or two; the first cuts `cut`

  dist::ReduceScatterOp scatter() const { return dyn_cast<dist::ReduceScatterOp>(root); }
  /// The other axis of two.
  StringAttr skewOf(StringRef axis) const;
};

/// Units that share the exchanges of an operand. They are made before `position`.
struct PanelGroup {
  std::vector<PanelUnit> units;
  Operation *position = nullptr;
};

/// In the order of their roots. Ops that a group needs are moved before its position.
std::vector<PanelGroup> findPanels(Block &block, const dist::Mesh &mesh);

} // namespace hpc::kernels
