// Hashes and comparisons of stored bytes over several chunks, each of which may be any core's.
// They must say what the plain loop says, wherever the one byte that differs is.
#include "compiler/Import/WeightContent.h"

#include "runtime/base/Hash.h"
#include "gtest/gtest.h"

#include <algorithm>

namespace hpc {
namespace {

std::vector<std::byte> bytesOf(int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  uint32_t state = 1;
  for (std::byte &byte : bytes)
    byte = std::byte((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

TEST(WeightContent, HashesEveryChunkOnce) {
  for (int64_t count :
       {int64_t(0), int64_t(1), hashChunkBytes - 1, hashChunkBytes, hashChunkBytes + 1, 5 * hashChunkBytes + 3}) {
    std::vector<std::byte> bytes = bytesOf(count);
    EXPECT_EQ(hashContent(bytes.data(), count), hashChunks(bytes.data(), count)) << count;
  }
}

TEST(WeightContent, OneByteAnywhereMakesADifference) {
  int64_t count = 3 * hashChunkBytes + 5;
  std::vector<std::byte> bytes = bytesOf(count), other = bytes;
  EXPECT_TRUE(sameContent(bytes.data(), other.data(), count));
  for (int64_t at : {int64_t(0), hashChunkBytes, 2 * hashChunkBytes - 1, count - 1}) {
    other[size_t(at)] ^= std::byte(1);
    EXPECT_FALSE(sameContent(bytes.data(), other.data(), count)) << at;
    other[size_t(at)] ^= std::byte(1);
  }
}

/// Sizes below, at and above the squares that are compared at a time; every element moved once.
TEST(WeightContent, Transposes) {
  for (int64_t width : {2, 4, 8})
    for (int64_t rows : {1, 31, 32, 33, 100})
      for (int64_t columns : {1, 32, 65}) {
        std::vector<std::byte> a = bytesOf(rows * columns * width), b(a.size());
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j)
            std::copy_n(a.begin() + (i * columns + j) * width, width, b.begin() + (j * rows + i) * width);
        EXPECT_TRUE(isTransposed(a.data(), b.data(), rows, columns, width));
        for (size_t at : {size_t(0), b.size() / 2, b.size() - 1}) {
          b[at] ^= std::byte(1);
          EXPECT_FALSE(isTransposed(a.data(), b.data(), rows, columns, width))
              << rows << "x" << columns << " at " << at;
          b[at] ^= std::byte(1);
        }
      }
}

TEST(WeightContent, Filled) {
  std::vector<std::byte> bytes(64, std::byte(7));
  EXPECT_TRUE(isFilled(bytes.data(), 64, 4));
  EXPECT_TRUE(isFilled(bytes.data(), 4, 4));
  EXPECT_TRUE(isFilled(bytes.data(), 0, 4));
  bytes[63] = std::byte(8);
  EXPECT_FALSE(isFilled(bytes.data(), 64, 4));
  EXPECT_TRUE(isFilled(bytes.data(), 60, 4));
}

} // namespace
} // namespace hpc
