// printf into a string, for lines of numbers.
#pragma once

#include <cstdio>
#include <string>

namespace hpc {

/// As printf formats it; numbers only, so that no text is cut.
template <typename... Numbers> std::string formattedText(const char *format, Numbers... numbers) {
  char text[512];
  std::snprintf(text, sizeof text, format, numbers...);
  return text;
}

} // namespace hpc
