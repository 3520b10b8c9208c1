// XXH3 by libxxhash.
#include "runtime/base/Hash.h"

#include <algorithm>
#include <xxhash.h>

namespace hpc {

uint64_t hashBytes(const void *data, int64_t bytes) { return XXH3_64bits(data, size_t(bytes)); }

std::vector<uint64_t> hashChunks(const void *data, int64_t bytes) {
  std::vector<uint64_t> hashes;
  hashes.reserve(size_t(numHashChunks(bytes)));
  const std::byte *start = static_cast<const std::byte *>(data);
  for (int64_t offset = 0; offset < bytes; offset += hashChunkBytes)
    hashes.push_back(hashBytes(start + offset, std::min(hashChunkBytes, bytes - offset)));
  return hashes;
}

} // namespace hpc
