// The columns of an image's windows (plan::Windows), a part at a time.
#pragma once

#include "runtime/plan/Plan.h"

#include <algorithm>
#include <cstddef>

namespace hpc::host {

/// to[i] = line[first + i * stride] where that is inside 0..size-1, else 0.
template <typename T>
[[gnu::always_inline]] inline void writeRun(const T *line, int64_t size, int64_t first, int64_t stride, int64_t count, T *to) {
  const int64_t begin = first >= 0 ? 0 : std::min(count, (stride - 1 - first) / stride);
  const int64_t end = first >= size ? begin : std::clamp((size - 1 - first) / stride + 1, begin, count);
  std::fill(to, to + begin, T(0));
  const T *from = line + first;
  if (stride == 1)
    std::copy(from + begin, from + end, to + begin);
  else if (stride == 2) // known to the compiler, it becomes shuffles
    for (int64_t i = begin; i < end; ++i)
      to[i] = from[2 * i];
  else
    for (int64_t i = begin; i < end; ++i)
      to[i] = from[stride * i];
  std::fill(to + end, to + count, T(0));
}

/// A part of the matrix that the windows are.
struct WindowPart {
  int64_t row = 0, rows = 0, column = 0, columns = 0;
};

/// Writes the part, row-major without gaps, in elements of `bytes` (2, 4 or 8). Its zeros are zero bytes.
void writeColumns(const plan::Windows &windows, const std::byte *image, int64_t bytes, const WindowPart &part, std::byte *to);

} // namespace hpc::host
