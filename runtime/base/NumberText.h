// A double as people write it, for messages: "0.5", "4", "1e+30".
// The shortest text that reads back as the same number; std::to_string would give 4.000000.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace hpc {

/// For printf, which would print a NaN's sign, although it has no meaning.
inline double printed(double number) { return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number; }

inline std::string numberText(double number) {
  char text[32];
  std::to_chars_result end = std::to_chars(text, text + sizeof text, printed(number));
  return std::string(text, end.ptr);
}

} // namespace hpc
