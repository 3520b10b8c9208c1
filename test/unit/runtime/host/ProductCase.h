// One product against a loop in double precision: numbers whose sums are exact in every type, NaN in C before and
// around it, so that what is left out, taken twice or written beside shows.
#pragma once

#include "runtime/backend/host/Product.h"
#include "runtime/base/HalfFloat.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <string>

namespace hpc::test {

using host::Product;

inline double get(DType dtype, const std::byte *data, int64_t i) {
  auto read = [&](auto value) {
    std::memcpy(&value, data + i * int64_t(sizeof(value)), sizeof(value));
    return value;
  };
  switch (dtype) {
  case DType::F64:
    return read(double());
  case DType::F16:
    return halfToFloat(read(uint16_t()));
  case DType::BF16:
    return bfloatToFloat(read(uint16_t()));
  case DType::I8:
    return read(int8_t());
  default:
    return read(float());
  }
}

inline void set(DType dtype, std::byte *data, int64_t i, double number) {
  auto write = [&](auto value) { std::memcpy(data + i * int64_t(sizeof(value)), &value, sizeof(value)); };
  switch (dtype) {
  case DType::F64:
    return write(number);
  case DType::F16:
    return write(floatToHalf(float(number)));
  case DType::BF16:
    return write(floatToBfloat(float(number)));
  case DType::I8:
    return write(int8_t(number * 4)); // value() has quarters
  default:
    return write(float(number));
  }
}

struct Case {
  DType a = DType::F32, b = DType::F32, c = DType::F32, accumulate = DType::F32;
  int64_t m = 1, n = 1, k = 1;
  bool transposeA = false, transposeB = false, add = false;
  int64_t slack = 0;
};

/// Multiples of 1/4 with sums below 2^7: exact in every type that holds them, bf16 included.
inline double value(int64_t i, int64_t seed) { return double((i * 7919 + seed) % 5 - 2) / 4; }

/// Multiplies by `multiply`, which may want `most` bytes of scratch, and compares each element, and what is around C.
inline void check(const Case &test, const std::function<Status(const Product &, std::vector<std::byte> &)> &multiply,
                  const std::function<int64_t(const Product &)> &most) {
  const auto &[typeA, typeB, typeC, accumulate, m, n, k, transposeA, transposeB, add, slack] = test;
  Product product{m, n, k};
  product.a = {nullptr, typeA, std::max<int64_t>(1, transposeA ? m : k) + slack, transposeA};
  product.b = {nullptr, typeB, std::max<int64_t>(1, transposeB ? k : n) + slack, transposeB};
  product.c = {nullptr, typeC, std::max<int64_t>(1, n) + slack, false};
  product.accumulate = accumulate;
  product.addToC = add;
  int64_t sizeA = std::max<int64_t>(1, transposeA ? k : m) * product.a.ld,
          sizeB = std::max<int64_t>(1, transposeB ? n : k) * product.b.ld,
          sizeC = std::max<int64_t>(1, m) * product.c.ld;
  std::vector<std::byte> a(size_t(sizeA * 8)), b(size_t(sizeB * 8)), c(size_t(sizeC * 8));
  for (int64_t i = 0; i < sizeA; ++i)
    set(typeA, a.data(), i, value(i, 1));
  for (int64_t i = 0; i < sizeB; ++i)
    set(typeB, b.data(), i, value(i, 3));
  for (int64_t i = 0; i < sizeC; ++i) // where nothing is added, what was there is poison
    set(typeC, c.data(), i,
        add && i / product.c.ld < m && i % product.c.ld < n ? value(i, 2) : std::numeric_limits<double>::quiet_NaN());
  std::vector<std::byte> before = c, scratch;
  product.a.data = a.data();
  product.b.data = b.data();
  product.c.data = c.data();
  Status status = multiply(product, scratch);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_LE(int64_t(scratch.size()), most(product));

  std::string what = std::string(name(typeA)) + " " + name(typeB) + " " + name(typeC) + " by " + name(accumulate) +
                     ": " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
                     (transposeA ? " A^T" : "") + (transposeB ? " B^T" : "") + (add ? " add" : "");
  for (int64_t i = 0; i < std::max<int64_t>(1, m); ++i)
    for (int64_t j = 0; j < product.c.ld; ++j) {
      int64_t at = i * product.c.ld + j;
      if (i >= m || j >= n) {
        ASSERT_TRUE(std::isnan(get(typeC, c.data(), at))) << what << ": wrote outside of C";
        continue;
      }
      double sum = add ? get(typeC, before.data(), at) : 0;
      for (int64_t x = 0; x < k; ++x)
        sum += get(typeA, a.data(), transposeA ? x * product.a.ld + i : i * product.a.ld + x) *
               get(typeB, b.data(), transposeB ? j * product.b.ld + x : x * product.b.ld + j);
      std::byte rounded[8];
      set(typeC, rounded, 0, sum);
      ASSERT_EQ(get(typeC, c.data(), at), get(typeC, rounded, 0)) << what << " at " << i << "," << j;
    }
}

} // namespace hpc::test
