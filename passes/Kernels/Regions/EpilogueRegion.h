// Regions that do to a matrix product what libraries of products do by themselves before they store it.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "runtime/plan/Plan.h"

namespace hpc::kernels {

/// A region that is relu(p + bias), GELU(p + bias) by tanh, or p + bias, of an operand p that one product without batch
/// dims has made (seen over other shapes, but with the same last dim) and a bias along p's last dim. All is of one
/// float type. Nothing where it is anything else.
std::optional<plan::Epilogue> findEpilogue(nn::FusedOp region);

} // namespace hpc::kernels
