// Runs of elements whose lines follow each other (inner > 1) or are one line (inner = 1), so that loops are over memory
// as it lies.
#include "runtime/base/Int8.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hpc {

namespace {

float read(const std::byte *from, int64_t element) {
  float value;
  std::memcpy(&value, from + element * int64_t(sizeof(value)), sizeof(value));
  return value;
}

/// As a number that grows with the magnitude, and is above that of every finite one where the value is not finite.
int32_t magnitudeBits(const std::byte *from, int64_t element) {
  int32_t bits;
  std::memcpy(&bits, from + element * int64_t(sizeof(bits)), sizeof(bits));
  return bits & 0x7fffffff;
}

constexpr int32_t infinityBits = 0x7f800000;

int8_t toInt8(float value, float scale) {
  if (scale == 0)
    return 0;
  // A scale that is subnormal has few bits, and the quotient may then be beyond 127.
  const float quotient = std::min(std::max(value / scale, -127.0f), 127.0f);
  constexpr float shift = 0x1.8p23f; // adding it leaves whole numbers, rounded to nearest even
  return int8_t((quotient + shift) - shift);
}

} // namespace

Lines Lines::along(const std::vector<int64_t> &shape, size_t dim) {
  Lines lines;
  for (size_t d = 0; d < shape.size(); ++d)
    (d < dim ? lines.outer : d == dim ? lines.size : lines.inner) *= shape[d];
  return lines;
}

std::optional<int64_t> int8Scales(const std::byte *from, const Lines &lines, float *scales) {
  const auto &[outer, size, inner] = lines;
  if (inner == 0)
    return std::nullopt;
  std::vector<int32_t> largest(size_t(inner), 0);
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t first = o * size * inner;
    std::fill(largest.begin(), largest.end(), 0);
    if (inner == 1)
      for (int64_t i = 0; i < size; ++i)
        largest[0] = std::max(largest[0], magnitudeBits(from, first + i));
    else
      for (int64_t row = 0; row < size; ++row)
        for (int64_t i = 0; i < inner; ++i)
          largest[size_t(i)] = std::max(largest[size_t(i)], magnitudeBits(from, first + row * inner + i));
    for (int64_t i = 0; i < inner; ++i) {
      float value;
      std::memcpy(&value, &largest[size_t(i)], sizeof(value));
      scales[o * inner + i] = value / 127.0f;
    }
    if (*std::max_element(largest.begin(), largest.end()) < infinityBits)
      continue;
    for (int64_t element = first;; ++element)
      if (magnitudeBits(from, element) >= infinityBits)
        return element;
  }
  return std::nullopt;
}

void toInt8(const std::byte *from, const Lines &lines, const float *scales, int64_t first, int64_t count,
            int8_t *codes) {
  for (int64_t done = 0; done < count;) {
    const int64_t element = first + done;
    const float *scale = scales + lines.of(element);
    const int64_t left = lines.inner == 1 ? lines.size - element % lines.size : lines.inner - element % lines.inner;
    const int64_t run = std::min(count - done, left);
    const int64_t step = lines.inner == 1 ? 0 : 1;
    for (int64_t i = 0; i < run; ++i)
      codes[done + i] = toInt8(read(from, element + i), scale[i * step]);
    done += run;
  }
}

} // namespace hpc
