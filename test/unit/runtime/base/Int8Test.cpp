// The rule of int8 weights against itself spelled out by hand, and by element for every dim of some shapes.
#include "runtime/base/Int8.h"

#include <cfenv>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace hpc;

namespace {

struct Coded {
  std::vector<float> scales;
  std::vector<int8_t> codes;
};

/// From bytes that no float would be aligned at.
Coded coded(const std::vector<float> &values, const std::vector<int64_t> &shape, size_t dim) {
  std::vector<std::byte> bytes(values.size() * 4 + 1);
  std::memcpy(bytes.data() + 1, values.data(), values.size() * 4);
  const Lines lines = Lines::along(shape, dim);
  Coded result{std::vector<float>(size_t(lines.count())), std::vector<int8_t>(values.size())};
  EXPECT_FALSE(int8Scales(bytes.data() + 1, lines, result.scales.data()));
  toInt8(bytes.data() + 1, lines, result.scales.data(), 0, int64_t(values.size()), result.codes.data());
  return result;
}

} // namespace

// The largest magnitude of a line is 127 whatever its sign, and what lies between two whole numbers goes to the even one: rounded
// away from zero or down, half of all codes of a coarse weight would be off by one.
TEST(Int8, LargestIs127AndTiesAreEven) {
  Coded line = coded({127, 0.5f, 1.5f, -0.5f, -1.5f, 2.5f, 126.5f, -126.5f}, {8}, 0);
  EXPECT_EQ(line.scales, std::vector<float>{1});
  EXPECT_EQ(line.codes, (std::vector<int8_t>{127, 0, 2, 0, -2, 2, 126, -126}));
  line = coded({-3, 1.5f}, {1, 2}, 1);
  EXPECT_EQ(line.scales[0], 3 / 127.0f);
  EXPECT_EQ(line.codes, (std::vector<int8_t>{-127, 64})); // 63.5
}

// A line of zeros has no scale to divide by, and one of subnormal numbers a scale of few bits: its codes stay within 127.
TEST(Int8, ZerosAndSubnormals) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  Coded lines = coded({0, 1, -0.0f, 2, 0, 4}, {3, 2}, 0);
  EXPECT_EQ(lines.scales[0], 0);
  EXPECT_EQ(lines.codes, (std::vector<int8_t>{0, 32, 0, 64, 0, 127}));
  lines = coded({tiny * 190, tiny, -tiny * 190, tiny * 60}, {2, 2}, 1);
  EXPECT_EQ(lines.scales, (std::vector<float>{tiny, tiny})); // 190 / 127 of the least number there is
  EXPECT_EQ(lines.codes, (std::vector<int8_t>{127, 1, -127, 60}));
  lines = coded({tiny, -tiny}, {2}, 0);
  EXPECT_EQ(lines.scales[0], 0);
  EXPECT_EQ(lines.codes, (std::vector<int8_t>{0, 0}));
  const float large = std::numeric_limits<float>::max();
  lines = coded({large, -large / 4}, {2}, 0);
  EXPECT_EQ(lines.codes, (std::vector<int8_t>{127, -32})); // 31.75
}

// Every dim of shapes of one to four dims, some of size 1 and 0: an element that took another line's scale would be another code.
TEST(Int8, EveryElementIsCodedByItsOwnLine) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const std::vector<int64_t> &shape : std::vector<std::vector<int64_t>>{{5}, {7, 3}, {3, 70}, {2, 5, 4}, {4, 1, 6}, {2, 3, 2, 5}, {3, 0, 2}, {0, 4}})
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      int64_t size = 1, inner = 1;
      for (size_t d = 0; d < shape.size(); ++d) {
        size *= shape[d];
        inner *= d > dim ? shape[d] : 1;
      }
      std::vector<float> values(size_t(size), 0);
      for (float &value : values)
        value = normal(random);
      Coded is = coded(values, shape, dim);
      for (int64_t element = 0; element < size; ++element) {
        float largest = 0;
        const int64_t first = element - element / inner % shape[dim] * inner;
        for (int64_t i = 0; i < shape[dim]; ++i)
          largest = std::max(largest, std::abs(values[size_t(first + i * inner)]));
        const float scale = largest / 127.0f;
        ASSERT_EQ(is.scales[size_t(Lines::along(shape, dim).of(element))], scale);
        ASSERT_EQ(float(is.codes[size_t(element)]), std::nearbyint(values[size_t(element)] / scale)) << element;
        ASSERT_LE(std::abs(double(values[size_t(element)]) - double(is.codes[size_t(element)]) * double(scale)),
                  double(scale) * (0.5 + 1e-6));
      }
    }
}

// Some of the elements, from anywhere: a rank quantises what it holds, of lines of which it may hold a part.
TEST(Int8, PartsAreThoseOfTheWhole) {
  const std::vector<int64_t> shape = {6, 11};
  std::vector<float> values(66);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(int(i * 37 % 101) - 50);
  for (size_t dim : {0, 1}) {
    Coded whole = coded(values, shape, dim);
    for (int64_t first = 0; first < 66; first += 5)
      for (int64_t count = 0; first + count <= 66; count += 7) {
        std::vector<int8_t> part(size_t(count) + 1, 99);
        toInt8(reinterpret_cast<const std::byte *>(values.data()), Lines::along(shape, dim), whole.scales.data(), first, count, part.data());
        ASSERT_EQ(std::vector<int8_t>(part.begin(), part.end() - 1),
                  std::vector<int8_t>(whole.codes.begin() + first, whole.codes.begin() + first + count));
        ASSERT_EQ(part.back(), 99);
      }
  }
}

// NaN and infinities have no int8: the first of them is named, in every place and along every dim.
TEST(Int8, WhatIsNotFiniteIsFound) {
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::nanf("")})
    for (size_t dim : {0, 1, 2})
      for (int64_t at = 0; at < 24; ++at) {
        std::vector<float> values(24, 1), scales(24);
        values[size_t(at)] = bad;
        EXPECT_EQ(int8Scales(reinterpret_cast<const std::byte *>(values.data()), Lines::along({2, 3, 4}, dim), scales.data()), at);
      }
}
