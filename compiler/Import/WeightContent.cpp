// Loops over chunks of stored bytes, each chunk on any core.
// A difference that one core finds ends the others' work.
#include "compiler/Import/WeightContent.h"

#include "runtime/base/Hash.h"
#include "llvm/Support/Parallel.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace hpc {
namespace {

/// Whether `holds(begin, end)` for every piece of 0 .. size-1.
template <typename Holds> bool allOf(int64_t size, int64_t piece, Holds holds) {
  if (size <= piece)
    return holds(0, size);
  std::atomic<bool> all = true;
  llvm::parallelFor(0, size_t((size + piece - 1) / piece), [&](size_t index) {
    int64_t begin = int64_t(index) * piece;
    if (all.load(std::memory_order_relaxed) && !holds(begin, std::min(size, begin + piece)))
      all = false;
  });
  return all;
}

} // namespace

std::vector<uint64_t> hashContent(const std::byte *data, int64_t bytes) {
  std::vector<uint64_t> hashes(size_t(numHashChunks(bytes)));
  allOf(bytes, hashChunkBytes, [&](int64_t begin, int64_t end) {
    if (begin < end)
      hashes[size_t(begin / hashChunkBytes)] = hashBytes(data + begin, end - begin);
    return true;
  });
  return hashes;
}

bool sameContent(const std::byte *a, const std::byte *b, int64_t bytes) {
  return a == b || allOf(bytes, hashChunkBytes, [&](int64_t begin, int64_t end) {
           return !std::memcmp(a + begin, b + begin, size_t(end - begin));
         });
}

bool isTransposed(const std::byte *a, const std::byte *b, int64_t rows, int64_t columns, int64_t width) {
  // Squares of 32 x 32 elements, so that either side's cache lines are used whole.
  constexpr int64_t square = 32;
  return allOf(rows, square, [&](int64_t begin, int64_t end) {
    for (int64_t left = 0; left < columns; left += square)
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = left; j < std::min(columns, left + square); ++j)
          if (std::memcmp(a + (i * columns + j) * width, b + (j * rows + i) * width, size_t(width)))
            return false;
    return true;
  });
}

bool isFilled(const std::byte *data, int64_t bytes, int64_t width) {
  return bytes <= width || !std::memcmp(data, data + width, size_t(bytes - width));
}

} // namespace hpc
