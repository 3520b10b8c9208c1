// A walk over the bytes by the table of prices; malformed bytes end it, since protobuf will refuse them.
#include "runtime/base/Footprint.h"

#include "runtime/base/WireFormat.h"

#include <algorithm>

namespace hpc {

/// `name`: the longest one so far.
static int64_t costOf(const std::byte *data, int64_t begin, int64_t end, const FootprintMessage &message, int depth,
                      int64_t &name) {
  constexpr int deepest = 100; // protobuf refuses deeper nesting
  int64_t total = 0;
  wire::Fields fields(data, begin, end);
  for (wire::Field field; fields.next(field);) {
    const FootprintField *known = std::find_if(message.fields, message.fields + message.count,
                                               [&](const FootprintField &each) { return each.number == field.number; });
    bool isKnown = known != message.fields + message.count;
    total += isKnown ? known->bytes : FootprintMessage::otherField;
    if (!isKnown || field.type != 2)
      continue;
    if (known->isName)
      name = std::max(name, field.end - field.begin);
    total += known->perPayloadByte * (field.end - field.begin);
    if (known->inner && depth < deepest)
      total += costOf(data, field.begin, field.end, *known->inner, depth + 1, name);
  }
  return total;
}

int64_t footprintOf(std::string_view bytes, const FootprintMessage &message) {
  int64_t name = 0;
  return costOf(reinterpret_cast<const std::byte *>(bytes.data()), 0, int64_t(bytes.size()), message, 0, name);
}

Status checkFootprint(std::string_view bytes, const FootprintMessage &message, ErrorKind kind) {
  int64_t name = 0;
  int64_t footprint = costOf(reinterpret_cast<const std::byte *>(bytes.data()), 0, int64_t(bytes.size()), message, 0, name);
  int64_t allowed = allowedFootprint(int64_t(bytes.size()));
  if (name > longestName)
    return Status::error(kind, "it has a name of " + std::to_string(name) + " bytes; names of nodes, tensors and ops have at most " +
                                   std::to_string(longestName));
  if (footprint <= allowed)
    return Status::success();
  return Status::error(kind, "its " + std::to_string(bytes.size()) + " bytes would become structs of about " +
                                 std::to_string(footprint >> 20) + " MiB, over the " + std::to_string(allowed >> 20) +
                                 " MiB that a file of this size may take: millions of empty or tiny pieces, as no program "
                                 "writes them; numbers belong in raw bytes");
}

} // namespace hpc
