// How much memory the structs of a protobuf file will take, before protobuf makes them: a field of two bytes may become a
// struct of hundreds. The schema is a table of prices.
#pragma once

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hpc {

struct FootprintMessage;

/// The price of a field, in bytes of memory.
struct FootprintField {
  uint64_t number;
  int64_t bytes;                            ///< each time that it occurs: protobuf's object and ours
  const FootprintMessage *inner = nullptr;  ///< the message in it, whose fields cost too
  int64_t perPayloadByte = 0;               ///< packed varints of one byte become numbers of eight, twice
  bool isName = false;                      ///< of at most longestName bytes: a program copies names again and again
};

constexpr int64_t longestName = 65536;

/// The fields that cost more than `otherField` each.
struct FootprintMessage {
  static constexpr int64_t otherField = 64;

  template <size_t count>
  constexpr explicit FootprintMessage(const FootprintField (&fields)[count]) : fields(fields), count(count) {}

  const FootprintField *fields;
  size_t count;
};

/// Bytes of memory that reading a file of that size may take, far more than valid files need. Small files always pass.
constexpr int64_t allowedFootprint(int64_t fileBytes) { return (int64_t(256) << 20) + 16 * fileBytes; }

/// About how many bytes the structs of a message take.
int64_t footprintOf(std::string_view bytes, const FootprintMessage &message);

/// An error of that kind where that is more than allowedFootprint, or a name is longer than longestName.
Status checkFootprint(std::string_view bytes, const FootprintMessage &message, ErrorKind kind);

} // namespace hpc
