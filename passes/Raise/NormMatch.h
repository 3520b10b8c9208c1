// Layer norm and RMS norm as exporters spell them out.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc {

/// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon), or x / sqrt(mean(x^2) + epsilon); no weight, no bias.
struct NormMatch {
  Value input;
  double epsilon = 0;
  bool subtractsMean = false; ///< layer norm
};

/// Matches at the division, or the multiplication with the inverse root.
std::optional<NormMatch> matchNorm(Operation *root);

} // namespace hpc
