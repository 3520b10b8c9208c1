// Which parameters are one weight, by their stored bytes.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "runtime/base/Status.h"

namespace hpc {

/// `duplicate` holds what `weight` holds, or its transpose (rank 2).
struct Tie {
  nn::ParameterOp weight, duplicate;
  bool isTransposed = false;
};

/// Every parameter that duplicates another, once. Of two, the weight is the one that an embedding reads, else the
/// first. Tensors whose elements are all equal are tied to nothing: so biases and norms begin, and being equal then
/// says nothing. Relative file names start from `folder`.
Expected<std::vector<Tie>> findTies(func::FuncOp function, const std::string &folder);

} // namespace hpc
