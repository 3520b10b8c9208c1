// Finds parameters that are one weight, by their stored bytes.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "runtime/base/Status.h"

namespace hpc {

/// `duplicate` holds what `weight` holds, or its transpose (rank 2).
struct Tie {
  nn::ParameterOp weight, duplicate;
  bool isTransposed = false;
};

/// Every parameter that duplicates another, once. Of two, the weight is the one that an embedding reads, otherwise the
/// first. Tensors whose elements are all equal are never tied: fresh biases and norms are such, and their equality
/// proves nothing. Relative file names start from `folder`.
Expected<std::vector<Tie>> findTies(func::FuncOp function, const std::string &folder);

} // namespace hpc
