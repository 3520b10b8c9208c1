// A number with its noun, for messages and print-outs: "1 transfer", "2 transfers".
// Nouns whose plural does not end in an s pass their ending.
#pragma once

#include <cstdint>
#include <string>

namespace hpc {

/// "0 micro-batches" with the ending "es".
inline std::string countText(int64_t count, const std::string &noun, const char *ending = "s") {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : ending);
}

} // namespace hpc
