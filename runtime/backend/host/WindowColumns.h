// The columns of an image's windows (plan::Windows), a part at a time.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>

namespace hpc::host {

/// A part of the matrix that the windows are.
struct WindowPart {
  int64_t row = 0, rows = 0, column = 0, columns = 0;
};

/// Writes the part, row-major without gaps, in elements of `bytes` (2, 4 or 8). Its zeros are zero bytes.
void writeColumns(const plan::Windows &windows, const std::byte *image, int64_t bytes, const WindowPart &part, std::byte *to);

} // namespace hpc::host
