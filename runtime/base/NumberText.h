// A double as people write it, for messages: "0.5", "4", "1e+30".
// The shortest text that reads back as the same number; std::to_string would say 4.000000.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace hpc {

/// For printf: a NaN's sign says nothing, and would be printed.
inline double printed(double number) { return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number; }

inline std::string numberText(double number) {
  char text[32];
  std::to_chars_result end = std::to_chars(text, text + sizeof text, printed(number));
  return std::string(text, end.ptr);
}

} // namespace hpc
