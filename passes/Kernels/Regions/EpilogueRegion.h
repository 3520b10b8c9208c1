// Regions that apply an operation to a GEMM's result which GEMM libraries apply themselves before they store it.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "runtime/plan/Plan.h"

namespace hpc::kernels {

/// A region that is relu(p + bias), GELU(p + bias) by tanh, or p + bias, of an operand p that one GEMM without batch
/// dims has made (perhaps reshaped, but with the same last dim) and a bias along p's last dim. All have one float type.
/// nullopt for any other region.
std::optional<plan::Epilogue> findEpilogue(nn::FusedOp region);

} // namespace hpc::kernels
