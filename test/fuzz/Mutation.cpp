// Changes of bytes, and the way to those of each format.
#include "test/fuzz/Mutation.h"

#include <algorithm>

namespace hpc::fuzz {

void changeBytes(std::string &bytes, const std::string &other, Random &random) {
  for (uint64_t changes = 1 + random.below(3); changes > 0 && !bytes.empty(); --changes) {
    size_t at = random.below(bytes.size()), length = 1 + random.below(std::min<size_t>(bytes.size() - at, 64));
    switch (random.below(7)) {
    case 0:
      bytes[at] = char(bytes[at] ^ (1 << random.below(8)));
      break;
    case 1:
      bytes[at] = char(random.below(256));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, length);
      break;
    case 4:
      bytes.insert(at, bytes.substr(at, length));
      break;
    case 5: // a varint near 2^63
      bytes.replace(at, std::min<size_t>(length, 10), std::string(random.below(10), '\xff') + '\x7f');
      break;
    case 6:
      if (!other.empty())
        bytes.insert(at, other.substr(random.below(other.size()), length));
      break;
    }
  }
}

static bool mutateAs(Format format, std::string &bytes, Mutation &mutation) {
  switch (format) {
  case Format::Protobuf:
    return mutateProtobuf(bytes, mutation);
  case Format::Json:
    return mutateJson(bytes, mutation);
  case Format::SafeTensors:
    return mutateSafeTensors(bytes, mutation);
  case Format::Archive:
    return mutateArchive(bytes, mutation);
  }
  return false;
}

std::string mutated(const std::string &bytes, Format format, Mutation &mutation) {
  std::string result = bytes;
  if (mutation.chance(4) || !mutateAs(format, result, mutation))
    mutation.changeBytes(result);
  return result;
}

} // namespace hpc::fuzz
