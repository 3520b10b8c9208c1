// GELU as exporters spell it out.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc {

struct GeluMatch {
  Value input;
  Operation *root = nullptr; ///< its result is gelu(input)
  bool isTanh = false;
};

/// Matches around an erf or a tanh.
std::optional<GeluMatch> matchGelu(Operation *activation);

} // namespace hpc
