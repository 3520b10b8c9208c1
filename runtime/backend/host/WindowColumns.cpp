// Runs along the last dim: the part of a run inside the image is copied, the rest is 0.
#include "runtime/backend/host/WindowColumns.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace hpc::host {

namespace {

template <typename T> void write(const plan::Windows &windows, const T *image, const WindowPart &part, T *to) {
  const size_t dims = windows.image.size(), last = dims - 1;
  const int64_t rowsOfChannel = windows.rowsOfChannel(), imageSize = windows.imageSize();
  std::vector<int64_t> offset(dims), start(dims), at(dims); // of the row in a window; of the first column; of the run
  int64_t rest = part.column;
  for (size_t d = dims; d-- > 0; rest /= windows.counts[d])
    start[d] = rest % windows.counts[d];
  for (int64_t row = part.row; row < part.row + part.rows; ++row) {
    rest = row % rowsOfChannel;
    for (size_t d = dims; d-- > 0; rest /= windows.sizes[d])
      offset[d] = rest % windows.sizes[d] * windows.dilations[d] - windows.low[d];
    const T *channel = image + row / rowsOfChannel * imageSize;
    at = start;
    for (int64_t left = part.columns; left > 0;) {
      const int64_t count = std::min(left, windows.counts[last] - at[last]);
      bool isInside = true;
      int64_t line = 0;
      for (size_t d = 0; d < last; ++d) {
        const int64_t position = at[d] * windows.strides[d] + offset[d];
        isInside &= position >= 0 && position < windows.image[d];
        line = line * windows.image[d] + position;
      }
      if (isInside)
        writeRun(channel + line * windows.image[last], windows.image[last], at[last] * windows.strides[last] + offset[last],
                 windows.strides[last], count, to);
      else
        std::fill(to, to + count, T(0));
      to += count;
      left -= count;
      at[last] = 0;
      for (size_t d = last; d-- > 0;) {
        if (++at[d] < windows.counts[d])
          break;
        at[d] = 0;
      }
    }
  }
}

} // namespace

void writeColumns(const plan::Windows &windows, const std::byte *image, int64_t bytes, const WindowPart &part, std::byte *to) {
  auto as = [&](auto type) {
    using T = decltype(type);
    write(windows, reinterpret_cast<const T *>(image), part, reinterpret_cast<T *>(to));
  };
  bytes == 2 ? as(uint16_t()) : bytes == 4 ? as(uint32_t()) : as(uint64_t());
}

} // namespace hpc::host
