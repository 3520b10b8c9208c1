// Which kernels a product can take over as it stores its result: bias and activation, for devices whose library of
// products does both in one go.
#pragma once

#include "runtime/plan/Plan.h"

#include <vector>

namespace hpc {

/// A product that is run in place of two instructions of a program.
struct ProductWithEpilogue {
  int64_t product, kernel; ///< indices of the two; the kernel is left out
  plan::Gemm gemm;         ///< the product with its epilogue, whose C is where the kernel's result lies
};

/// Where no rank can tell the two ways apart but by their roundings: the kernel's argument is what one product has
/// written, and nothing else reads it; nothing between the two touches the result, or writes the bias, or waits for
/// what does. The plan has passed its check.
std::vector<ProductWithEpilogue> findFusedEpilogues(const plan::Plan &plan, const plan::Stage &stage,
                                              const plan::Program &program);

} // namespace hpc
