// What is done to a product's elements once they are sums: bias and activation, row by row.
#pragma once

#include "runtime/plan/Plan.h"

namespace hpc::host {

/// Of C [m, n], row-major with rows `ld` elements apart, and a bias of n elements, both of type `dtype` (a float). Computed in
/// f32 (f64 of f64) from C as it is stored. NaN stays NaN.
void applyEpilogue(plan::Epilogue epilogue, DType dtype, int64_t m, int64_t n, int64_t ld, std::byte *c,
                   const std::byte *bias);

} // namespace hpc::host
