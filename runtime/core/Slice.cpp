// Loops over a slice: dims in the order of the local buffer, neighbours merged where they are contiguous on both sides.
#include "runtime/core/Slice.h"

#include <algorithm>
#include <cstring>

namespace hpc {

namespace {

std::vector<int64_t> rowMajorStrides(const std::vector<int64_t> &sizes, int64_t innermost) {
  std::vector<int64_t> strides(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = innermost;
    innermost *= sizes[d];
  }
  return strides;
}

template <bool IntoLocal> void move(std::byte *local, std::byte *global, int64_t bytes) {
  if (IntoLocal)
    std::memcpy(local, global, size_t(bytes));
  else
    std::memcpy(global, local, size_t(bytes));
}

/// A strided innermost loop; a constant size makes each memcpy one instruction.
template <bool IntoLocal, int Bytes>
void moveStrided(std::byte *local, std::byte *global, int64_t count, int64_t localStride, int64_t globalStride) {
  for (int64_t i = 0; i < count; ++i)
    move<IntoLocal>(local + i * localStride, global + i * globalStride, Bytes);
}

} // namespace

SliceCopy::SliceCopy(const plan::Slice &slice, int64_t elementSize, Place place) : element(elementSize) {
  size_t rank = slice.view.size();
  std::vector<int64_t> strides = rowMajorStrides(slice.view, elementSize);
  box = elementSize;
  run = elementSize;
  int64_t inner = elementSize;
  std::vector<Loop> all;
  for (size_t d = rank; d-- > 0;) {
    int64_t extent = place(slice.extent[d]);
    globalStart += place(slice.start[d]) * strides[d];
    padded |= extent < slice.box[d];
    box *= slice.box[d];
    if (extent == 0)
      run = 0;
    if (extent != 1)
      all.push_back({extent, strides[d], inner});
    inner *= slice.box[d];
  }
  if (run == 0)
    return; // nothing is held, and globalStart may lie outside
  // `all` runs from inner to outer: first what lies together, then loops of which one may continue the one before.
  size_t next = 0;
  while (next < all.size() && all[next].globalStride == run && all[next].localStride == run)
    run *= all[next++].size;
  for (; next < all.size(); ++next) {
    if (!loops.empty() && all[next].globalStride == loops.back().size * loops.back().globalStride &&
        all[next].localStride == loops.back().size * loops.back().localStride)
      loops.back().size *= all[next].size;
    else
      loops.push_back(all[next]);
  }
  std::reverse(loops.begin(), loops.end());
}

template <bool IntoLocal> void SliceCopy::copy(size_t depth, std::byte *local, std::byte *global) const {
  if (depth == loops.size())
    return move<IntoLocal>(local, global, run);
  const Loop &loop = loops[depth];
  if (depth + 1 == loops.size() && run == element) {
    switch (element) {
    case 1:
      return moveStrided<IntoLocal, 1>(local, global, loop.size, loop.localStride, loop.globalStride);
    case 2:
      return moveStrided<IntoLocal, 2>(local, global, loop.size, loop.localStride, loop.globalStride);
    case 4:
      return moveStrided<IntoLocal, 4>(local, global, loop.size, loop.localStride, loop.globalStride);
    case 8:
      return moveStrided<IntoLocal, 8>(local, global, loop.size, loop.localStride, loop.globalStride);
    }
  }
  for (int64_t i = 0; i < loop.size; ++i)
    copy<IntoLocal>(depth + 1, local + i * loop.localStride, global + i * loop.globalStride);
}

void SliceCopy::gather(const std::byte *global, std::byte *local) const {
  if (padded)
    std::memset(local, 0, size_t(box));
  if (run > 0)
    copy<true>(0, local, const_cast<std::byte *>(global) + globalStart);
}

void SliceCopy::scatter(const std::byte *local, std::byte *global) const {
  if (run > 0)
    copy<false>(0, const_cast<std::byte *>(local), global + globalStart);
}

int64_t SliceCopy::globalOffsetOf(int64_t local) const {
  int64_t at = globalStart;
  for (const Loop &loop : loops) {
    const int64_t i = std::min(local / loop.localStride, loop.size - 1);
    at += i * loop.globalStride;
    local -= i * loop.localStride;
  }
  return at + std::min(local, run - 1);
}

template <bool IntoLocal>
void SliceCopy::copyPart(size_t depth, const Part &part, int64_t at, std::byte *global) const {
  if (depth == loops.size()) {
    const int64_t begin = std::max(at, part.begin), end = std::min(at + run, part.end);
    if (begin < end)
      move<IntoLocal>(part.data + (begin - part.begin), global + (begin - at), end - begin);
    return;
  }
  // The part of the box that one round covers is not longer than its stride, since the box is row-major.
  const Loop &loop = loops[depth];
  const int64_t first = std::max<int64_t>(0, (part.begin - at) / loop.localStride);
  for (int64_t i = first; i < loop.size && at + i * loop.localStride < part.end; ++i)
    copyPart<IntoLocal>(depth + 1, part, at + i * loop.localStride, global + i * loop.globalStride);
}

void SliceCopy::gatherPart(const std::byte *global, std::byte *part, int64_t begin, int64_t bytes) const {
  if (padded)
    std::memset(part, 0, size_t(bytes));
  if (run > 0)
    copyPart<true>(0, {part, begin, begin + bytes}, 0, const_cast<std::byte *>(global) + globalStart);
}

void SliceCopy::scatterPart(const std::byte *part, std::byte *global, int64_t begin, int64_t bytes) const {
  if (run > 0)
    copyPart<false>(0, {const_cast<std::byte *>(part), begin, begin + bytes}, 0, global + globalStart);
}

void SliceCopy::visitPart(int64_t begin, int64_t bytes,
                          const std::function<void(int64_t, int64_t, int64_t)> &visit) const {
  std::function<void(size_t, int64_t, int64_t)> walk = [&](size_t depth, int64_t at, int64_t from) {
    if (depth == loops.size()) {
      const int64_t first = std::max(at, begin), last = std::min(at + run, begin + bytes);
      if (first < last)
        visit(first - begin, from + (first - at), last - first);
      return;
    }
    const Loop &loop = loops[depth];
    const int64_t first = std::max<int64_t>(0, (begin - at) / loop.localStride);
    for (int64_t i = first; i < loop.size && at + i * loop.localStride < begin + bytes; ++i)
      walk(depth + 1, at + i * loop.localStride, from + i * loop.globalStride);
  };
  if (run > 0)
    walk(0, 0, globalStart);
}

std::vector<bool> touchedChunks(const plan::Slice &slice, int64_t elementSize, Place place, int64_t chunkBytes) {
  int64_t total = elementSize, first = 0;
  for (int64_t size : slice.view)
    total *= size;
  std::vector<bool> touched(size_t(total / chunkBytes + (total % chunkBytes != 0)), false);
  // In storage order; inner dims that are held whole are one run.
  std::vector<std::pair<int64_t, int64_t>> loops; // size, stride
  int64_t stride = elementSize, run = elementSize;
  for (size_t d = slice.view.size(); d-- > 0; stride *= slice.view[d]) {
    int64_t extent = place(slice.extent[d]);
    if (extent == 0)
      return touched;
    first += place(slice.start[d]) * stride;
    if (run == stride && loops.empty())
      run *= extent;
    else
      loops.push_back({extent, stride});
  }
  std::vector<int64_t> index(loops.size(), 0);
  for (int64_t at = first;;) {
    for (int64_t chunk = at / chunkBytes; chunk <= (at + run - 1) / chunkBytes; ++chunk)
      touched[size_t(chunk)] = true;
    size_t d = 0;
    for (; d < loops.size(); ++d) {
      at += loops[d].second;
      if (++index[d] < loops[d].first)
        break;
      at -= index[d] * loops[d].second;
      index[d] = 0;
    }
    if (d == loops.size())
      return touched;
  }
}

} // namespace hpc
