// A number, then a unit.
#include "passes/Driver/ByteSize.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace hpc {

Expected<int64_t> parseByteSize(const std::string &text) {
  llvm::StringRef rest = text;
  llvm::StringRef number = rest.take_while([](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  llvm::StringRef unit = rest.drop_front(number.size()).trim();
  double value = 0, scale = 1;
  bool isKnown = unit.empty() || unit == "B";
  for (auto [index, letter] : {std::pair(1, 'K'), std::pair(2, 'M'), std::pair(3, 'G'), std::pair(4, 'T')})
    for (auto [ending, base] : {std::pair("iB", 1024.0), std::pair("B", 1000.0)})
      if (unit.size() >= 2 && unit.front() == letter && unit.drop_front() == ending) {
        scale = std::pow(base, index);
        isKnown = true;
      }
  if (!isKnown || number.empty() || number.getAsDouble(value) || value * scale < 1 || value * scale >= 0x1p62)
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
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value) << " " << unit;
  return text;
}

} // namespace hpc
