// The hash of stored tensors: XXH3 (64 bits) of every MiB, so that a rank can check just the parts that it reads.
// It detects damage and mix-ups; it is no defence against a forged file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hpc {

constexpr int64_t hashChunkBytes = int64_t(1) << 20;

/// Chunks of a tensor of `bytes` bytes; the last one may be shorter.
inline int64_t numHashChunks(int64_t bytes) { return bytes / hashChunkBytes + (bytes % hashChunkBytes != 0); }

uint64_t hashBytes(const void *data, int64_t bytes);

/// One hash per MiB of data; none for no bytes.
std::vector<uint64_t> hashChunks(const void *data, int64_t bytes);

} // namespace hpc
