// Sums over a row of which one term alone counts: a loss's logit of the label, written so that the row may be cut. Read
// at its place it costs one load instead of a loop.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

/// The sum over `axis` of (positions == number ? value : 0).
struct OneHotSum {
  nn::IotaOp positions; ///< start + index along `axis` + offset, in 64 bits
  Value number;         ///< the same along `axis`
  Value value;          ///< computed from buffers, element by element, so available at any index
  int64_t axis;
};

std::optional<OneHotSum> findOneHotSum(nn::ReduceOp op);

} // namespace hpc::kernels
