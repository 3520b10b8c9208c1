// Copies and reductions between the members' memory, in the order of their positions.
#include "runtime/backend/host/Exchange.h"

#include "runtime/base/IntegerMath.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace hpc::host {

namespace {

using plan::CollectiveKind;

/// Results of this many bytes a member are written past the caches, since nobody reads them soon.
constexpr int64_t streamedBytes = 16 << 20;
using Line = float __attribute__((vector_size(64)));

/// memcpy that neither reads the target nor keeps it in a cache. finishStreams() must follow before others may read it.
void stream(std::byte *target, const std::byte *source, int64_t bytes) {
  const int64_t size = sizeof(Line);
  int64_t at = std::min(bytes, int64_t(-reinterpret_cast<uintptr_t>(target) % sizeof(Line))); // up to the first line
  std::memcpy(target, source, size_t(at));
  for (; at + size <= bytes; at += size) {
    Line line;
    std::memcpy(&line, source + at, sizeof(line));
    __builtin_nontemporal_store(line, reinterpret_cast<Line *>(target + at));
  }
  std::memcpy(target + at, source + at, size_t(bytes - at));
}
void copy(std::byte *target, const std::byte *source, int64_t bytes) { std::memcpy(target, source, size_t(bytes)); }
void finishStreams() {
#if defined(__x86_64__)
  __builtin_ia32_sfence(); // they are ordered by nothing else
#endif
}

void copyBytes(std::byte *target, const std::byte *source, int64_t bytes) {
  if (bytes > 0 && target != source)
    std::memcpy(target, source, size_t(bytes));
}

/// Reduces elements first .. first+count-1 of all sources and calls store(address, first element, elements) on pieces.
template <typename F>
void reduceRange(const std::vector<Share> &shares, const Reduction &reduction, int64_t elementSize, int64_t first,
                 int64_t count, F store) {
  alignas(64) std::byte block[8192];
  const int64_t step = int64_t(sizeof(block)) / reduction.wideSize;
  for (int64_t at = first; at < first + count; at += step) {
    int64_t elements = std::min(step, first + count - at);
    reduction.begin(block, shares[0].source + at * elementSize, elements);
    for (size_t j = 1; j < shares.size(); ++j)
      reduction.add(block, shares[j].source + at * elementSize, elements);
    reduction.end(block, elements);
    store(block, at, elements);
  }
}

} // namespace

bool reduces(CollectiveKind kind) { return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter; }

Status checkPosition(const plan::Collective &collective, int64_t position, int64_t members) {
  if (collective.kind != CollectiveKind::Permute || (position >= 0 && position < members))
    return Status::success();
  return Status::error(ErrorKind::Plan, "a permute takes from position " + std::to_string(position) +
                                            " of a group of " + std::to_string(members));
}

int64_t sourceBytes(const plan::Collective &collective, int64_t members) {
  bool blocks = collective.kind == CollectiveKind::ReduceScatter || collective.kind == CollectiveKind::AllToAll;
  return collective.count * byteSize(collective.dtype) * (blocks ? members : 1);
}

int64_t targetBytes(const plan::Collective &collective, int64_t members) {
  bool blocks = collective.kind == CollectiveKind::AllGather || collective.kind == CollectiveKind::AllToAll;
  return collective.count * byteSize(collective.dtype) * (blocks ? members : 1);
}

bool needsCopy(const plan::Collective &collective, const Share &share, int64_t members) {
  return collective.kind != CollectiveKind::AllReduce &&
         share.source < share.target + targetBytes(collective, members) &&
         share.target < share.source + sourceBytes(collective, members);
}

void exchange(const plan::Collective &collective, const Reduction &reduction, const std::vector<Share> &shares,
              int64_t me) {
  const int64_t elementSize = byteSize(collective.dtype), count = collective.count, bytes = count * elementSize;
  const int64_t size = int64_t(shares.size());
  const Share &mine = shares[size_t(me)];
  switch (collective.kind) {
  case CollectiveKind::AllReduce: {
    // Each member reduces one part, in whole cache lines, and writes it to all.
    int64_t part = roundUp(ceilDiv(count, size), 64 / elementSize);
    int64_t first = std::min(count, me * part);
    reduceRange(shares, reduction, elementSize, first, std::min(part, count - first),
                [&](const std::byte *block, int64_t at, int64_t elements) {
                  for (const Share &share : shares) // in place the lines have just been read
                    (bytes >= streamedBytes && share.target != share.source ? stream : copy)(
                        share.target + at * elementSize, block, elements * elementSize);
                });
    finishStreams();
    return;
  }
  case CollectiveKind::ReduceScatter:
    reduceRange(shares, reduction, elementSize, me * count, count,
                [&](const std::byte *block, int64_t at, int64_t elements) {
                  std::memcpy(mine.target + (at - me * count) * elementSize, block, size_t(elements * elementSize));
                });
    return;
  case CollectiveKind::AllGather:
    for (int64_t j = 0; j < size; ++j)
      copyBytes(mine.target + j * bytes, shares[size_t(j)].source, bytes);
    return;
  case CollectiveKind::AllToAll:
    for (int64_t j = 0; j < size; ++j)
      copyBytes(mine.target + j * bytes, shares[size_t(j)].source + me * bytes, bytes);
    return;
  case CollectiveKind::Permute:
    copyBytes(mine.target, shares[size_t(mine.sourcePosition)].source, bytes);
    return;
  }
}

} // namespace hpc::host
