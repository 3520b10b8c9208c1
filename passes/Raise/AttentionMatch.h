// Attention as exporters write it, and the part of its masks that an nn.attention may take as causal.
#pragma once

#include "passes/Raise/CausalMask.h"

namespace hpc {

/// One step from scaled scores s to the softmax: s + term, or s where all of `visible` hold and `low` elsewhere.
struct ScoreStep {
  Value term; ///< null: a selection
  SmallVector<Conjunct> visible;
  Value low; ///< a constant of one number
};

/// Steps as nn.attention's causal_offset and the steps that remain.
struct MaskSplit {
  std::optional<int64_t> causalOffset;
  /// In the order in which they apply, of types that only widen.
  SmallVector<ScoreStep> rest;
  bool everyRowSees = false; ///< no row can be masked as a whole
};

/// `steps` inside out.
MaskSplit splitMask(ArrayRef<ScoreStep> steps);

struct AttentionMatch {
  nn::MatmulOp scores, root; ///< q k^T and the product with v
  double scale = 1;
  MaskSplit mask;
  bool isGuarded = false; ///< a row that sees nothing gives 0
  nn::DropoutOp dropout;  ///< of the weights, or null
};

/// Matches at the product with v; ranks are 2 to 4.
std::optional<AttentionMatch> matchAttention(nn::MatmulOp root);

} // namespace hpc
