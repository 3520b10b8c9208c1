// A number, then a unit.
#include "runtime/base/ByteSize.h"

#include <charconv>
#include <cmath>

namespace hpc {

Expected<int64_t> parseByteSize(const std::string &text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const size_t unitStart = std::min(text.find_first_not_of(' ', digits), text.size());
  const std::string unit = text.substr(unitStart);
  double value = 0, scale = 1;
  bool isKnown = unit.empty() || unit == "B";
  for (auto [index, letter] : {std::pair(1, "K"), std::pair(2, "M"), std::pair(3, "G"), std::pair(4, "T")})
    for (auto [ending, base] : {std::pair("iB", 1024.0), std::pair("B", 1000.0)})
      if (unit == std::string(letter) + ending) {
        scale = std::pow(base, index);
        isKnown = true;
      }
  const char *end = text.data() + digits;
  if (!isKnown || digits == 0 || std::from_chars(text.data(), end, value).ptr != end || value * scale < 1 || value * scale >= 0x1p62)
    return Status::error(ErrorKind::Usage, "is no size of memory; use bytes, or a number with KiB, MiB, GiB, TiB, KB, "
                                           "MB, GB or TB, as in 24GiB");
  return int64_t(value * scale);
}

std::string byteSizeText(int64_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  double value = double(bytes);
  const char *unit = "";
  for (const char *next : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
    if (value < 1024)
      break;
    value /= 1024;
    unit = next;
  }
  char text[64];
  std::snprintf(text, sizeof(text), value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, unit);
  return text;
}

} // namespace hpc
