// Integer division that rounds up. Arguments are not negative.
#pragma once

#include <cstdint>

namespace hpc {

constexpr int64_t ceilDiv(int64_t value, int64_t unit) { return value / unit + (value % unit != 0); }
/// The least multiple of `unit` that is not below `value`.
constexpr int64_t roundUp(int64_t value, int64_t unit) { return ceilDiv(value, unit) * unit; }

} // namespace hpc
