// The part of the data that a run takes: for training, validation or test. Parts that follow each other neither overlap nor leave a row out.
#pragma once

#include <cmath>
#include <cstdint>

namespace hpc {

/// From `begin` to `end`, fractions of all rows, each rounded to the nearest row, as Megatron-LM splits documents.
struct RowRange {
  double begin = 0, end = 1;

  int64_t first(int64_t rows) const { return std::llround(begin * double(rows)); }
  int64_t count(int64_t rows) const { return std::llround(end * double(rows)) - first(rows); }
};

} // namespace hpc
