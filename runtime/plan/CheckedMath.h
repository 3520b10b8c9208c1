// Arithmetic on sizes from a file: it saturates instead of overflowing, so that a bound test after it is always right.
// All arguments are >= 0.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace hpc::plan {

constexpr int64_t saturated = std::numeric_limits<int64_t>::max();

inline int64_t addSizes(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_add_overflow(a, b, &result) ? saturated : result;
}

inline int64_t multiplySizes(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? saturated : result;
}

/// 1 for no dims; 0 as soon as a dim is 0.
inline int64_t productOf(const std::vector<int64_t> &sizes) {
  for (int64_t size : sizes)
    if (size == 0)
      return 0;
  int64_t result = 1;
  for (int64_t size : sizes)
    result = multiplySizes(result, size);
  return result;
}

} // namespace hpc::plan
