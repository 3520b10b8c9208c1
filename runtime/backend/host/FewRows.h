// Products of few rows, as a step of decoding has them: B is read once, as fast as memory gives it, and widened on the
// way where it is narrower than f32. The bits of an element of C depend on its row of A, its column of B and their depth
// alone.
#pragma once

#include "runtime/base/DType.h"

#include <cstddef>
#include <cstdint>

namespace hpc::host {

constexpr int64_t fewRows = 8;

/// sums[rows, columns] = a[rows, depth] * B[depth, columns]; no extent is 0. `a` and `sums` have no gaps. B's elements are f32, bf16, f16
/// or i8; `transposed`: its columns lie in memory as rows. `ld`: elements from one stored row to the next.
struct FewRows {
  int64_t rows = 0, columns = 0, depth = 0;
  const float *a = nullptr;
  const std::byte *b = nullptr;
  DType dtype = DType::F32;
  int64_t ld = 1;
  bool transposed = false;
  float *sums = nullptr;
};

/// Whether this machine has the vectors for it: AVX-512, or AVX2 with FMA and F16C.
bool hasFewRows();

/// `mayBeWide`: uses AVX-512 if the machine has it.
void multiplyFewRows(const FewRows &product, bool mayBeWide = true);

/// sums[j] += parts[j] + parts[apart + j] + ..., `count` of them one after the other, for j below `columns`.
void addRowParts(const float *parts, int64_t count, int64_t apart, int64_t columns, float *sums);

} // namespace hpc::host
