// Squares of 16 in registers where the machine has AVX-512, else squares that stay in L1.
#include "runtime/backend/host/Transpose.h"

#include "runtime/backend/host/TileTranspose.h"

#include <algorithm>

namespace hpc::host {

namespace {
constexpr int64_t side = 16;

[[gnu::target("avx512f")]] void transposeSquare(const float *from, int64_t ldFrom, int64_t rows, int64_t columns, float *to,
                                                int64_t ldTo) {
  __m512 square[side];
  const __mmask16 across = __mmask16((1u << columns) - 1), down = __mmask16((1u << rows) - 1);
  for (int64_t i = 0; i < side; ++i)
    square[i] = i < rows ? _mm512_maskz_loadu_ps(across, from + i * ldFrom) : _mm512_setzero_ps();
  transpose(square);
  for (int64_t j = 0; j < columns; ++j)
    _mm512_mask_storeu_ps(to + j * ldTo, down, square[j]);
}

void transposeLoops(const float *from, int64_t ldFrom, int64_t rows, int64_t columns, float *to, int64_t ldTo) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i)
      to[j * ldTo + i] = from[i * ldFrom + j];
}
} // namespace

void transpose(const float *from, int64_t ldFrom, int64_t rows, int64_t columns, float *to, int64_t ldTo) {
  static const bool hasVectors = __builtin_cpu_supports("avx512f");
  const auto square = hasVectors ? transposeSquare : transposeLoops;
  for (int64_t j = 0; j < columns; j += side)
    for (int64_t i = 0; i < rows; i += side)
      square(from + i * ldFrom + j, ldFrom, std::min(side, rows - i), std::min(side, columns - j), to + j * ldTo + i, ldTo);
}

} // namespace hpc::host
