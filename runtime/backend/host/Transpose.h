// A matrix of f32 transposed: rows of channels become rows of positions, and back.
#pragma once

#include <cstdint>

namespace hpc::host {

/// to[j * ldTo + i] = from[i * ldFrom + j] for i < rows, j < columns.
void transpose(const float *from, int64_t ldFrom, int64_t rows, int64_t columns, float *to, int64_t ldTo);

} // namespace hpc::host
