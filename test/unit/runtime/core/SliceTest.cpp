// Slices against brute force over single elements: every small view, start and extent.
#include "runtime/core/Slice.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

using namespace hpc;

namespace {

int64_t product(const std::vector<int64_t> &sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

/// Calls f(global index, local index) for each element that the slice holds; indices count elements.
template <typename F> void eachElement(const plan::Slice &slice, Place place, F f) {
  size_t rank = slice.view.size();
  for (int64_t local = 0, count = product(slice.box); local < count; ++local) {
    std::vector<int64_t> index(rank);
    int64_t rest = local;
    for (size_t d = rank; d-- > 0;) {
      index[d] = rest % slice.box[d];
      rest /= slice.box[d];
    }
    int64_t global = 0;
    bool held = true;
    for (size_t d = 0; d < rank; ++d) {
      held &= index[d] < place(slice.extent[d]);
      global = global * slice.view[d] + place(slice.start[d]) + index[d];
    }
    if (held)
      f(global, local);
  }
}

template <typename T> void check(const plan::Slice &slice, Place place) {
  std::vector<T> global(size_t(product(slice.view))), local(size_t(product(slice.box)), T(77));
  std::iota(global.begin(), global.end(), T(1));
  std::vector<T> expectedLocal(local.size(), T(0)), expectedGlobal(global.size(), T(0)), scattered(global.size(), T(0));
  eachElement(slice, place, [&](int64_t g, int64_t l) {
    expectedLocal[size_t(l)] = global[size_t(g)];
    expectedGlobal[size_t(g)] = global[size_t(g)];
  });
  SliceCopy copy(slice, sizeof(T), place);
  EXPECT_EQ(copy.boxBytes(), int64_t(local.size() * sizeof(T)));
  copy.gather(reinterpret_cast<const std::byte *>(global.data()), reinterpret_cast<std::byte *>(local.data()));
  EXPECT_EQ(local, expectedLocal);
  // Padding must not reach the global tensor.
  for (size_t l = 0; l < local.size(); ++l)
    if (expectedLocal[l] == 0)
      local[l] = T(99);
  copy.scatter(reinterpret_cast<const std::byte *>(local.data()), reinterpret_cast<std::byte *>(scattered.data()));
  EXPECT_EQ(scattered, expectedGlobal);

  eachElement(slice, place, [&](int64_t g, int64_t l) {
    for (int64_t byte = 0; byte < int64_t(sizeof(T)); ++byte)
      EXPECT_EQ(copy.globalOffsetOf(l * int64_t(sizeof(T)) + byte), g * int64_t(sizeof(T)) + byte);
  });
  // In parts of any length, which may end within an element, a box is the same.
  for (int64_t length : {1, 3, 8, 40}) {
    std::vector<T> byParts(local.size(), T(55)), scatteredByParts(global.size(), T(0));
    auto *bytes = reinterpret_cast<std::byte *>(byParts.data());
    for (int64_t begin = 0; begin < copy.boxBytes(); begin += length) {
      std::vector<std::byte> part(size_t(std::min(length, copy.boxBytes() - begin)), std::byte{77});
      copy.gatherPart(reinterpret_cast<const std::byte *>(global.data()), part.data(), begin, int64_t(part.size()));
      std::copy(part.begin(), part.end(), bytes + begin);
      std::copy_n(reinterpret_cast<const std::byte *>(local.data()) + begin, part.size(), part.begin());
      copy.scatterPart(part.data(), reinterpret_cast<std::byte *>(scatteredByParts.data()), begin,
                       int64_t(part.size()));
    }
    EXPECT_EQ(byParts, expectedLocal) << length;
    EXPECT_EQ(scatteredByParts, expectedGlobal) << length;
  }

  for (int64_t chunk : {int64_t(1), int64_t(3), int64_t(16), int64_t(1000)}) {
    std::vector<bool> touched(size_t((int64_t(global.size() * sizeof(T)) + chunk - 1) / chunk), false);
    eachElement(slice, place, [&](int64_t g, int64_t) {
      for (int64_t byte = g * int64_t(sizeof(T)); byte < (g + 1) * int64_t(sizeof(T)); ++byte)
        touched[size_t(byte / chunk)] = true;
    });
    EXPECT_EQ(touchedChunks(slice, sizeof(T), place, chunk), touched) << chunk;
  }
}

void checkTypes(const plan::Slice &slice, Place place = {}) {
  check<uint8_t>(slice, place);
  check<uint16_t>(slice, place);
  check<uint32_t>(slice, place);
  check<uint64_t>(slice, place);
}

/// All ways of cutting one dim: {start, extent, box}.
std::vector<std::array<int64_t, 3>> cuts(int64_t size) {
  std::vector<std::array<int64_t, 3>> all;
  for (int64_t start = 0; start <= size; ++start)
    for (int64_t extent = 0; start + extent <= size; ++extent)
      for (int64_t padding : {0, 1})
        if (extent + padding > 0)
          all.push_back({start, extent, extent + padding});
  return all;
}

} // namespace

TEST(Slice, AllCutsOfThreeDims) {
  std::vector<int64_t> view = {2, 1, 3};
  plan::Slice slice;
  slice.view = view;
  for (const auto &a : cuts(2))
    for (const auto &b : cuts(1))
      for (const auto &c : cuts(3)) {
        slice.start = {a[0], b[0], c[0]};
        slice.extent = {a[1], b[1], c[1]};
        slice.box = {a[2], b[2], c[2]};
        check<uint32_t>(slice, {});
      }
}

TEST(Slice, ElementSizes) {
  plan::Slice slice{{3, 4, 5}, {1, 0, 2}, {2, 4, 3}, {2, 4, 3}};
  checkTypes(slice);
  checkTypes({{3, 4, 5}, {1, 1, 0}, {2, 3, 5}, {2, 4, 5}});
  checkTypes({{}, {}, {}, {}}); // a scalar
}

TEST(Slice, QkvHeadsOfTheWorkedExample) {
  // (3, 5@tp, 8) over tp = 2: rank 1 holds 24..39, 64..79, 104..119, and 8 padding after each.
  plan::ByCoord start, extent;
  start.values = {0, 3};
  extent.values = {3, 2};
  plan::Slice slice{{2, 3, 5, 8}, {0, 0, start, 0}, {2, 3, extent, 8}, {2, 3, 3, 8}};
  for (int64_t coordinate : {0, 1})
    checkTypes(slice, {coordinate, 0, 2});
  std::vector<uint8_t> global(240), local(144, 9);
  std::iota(global.begin(), global.end(), 0);
  SliceCopy(slice, 1, {1, 0, 2})
      .gather(reinterpret_cast<std::byte *>(global.data()), reinterpret_cast<std::byte *>(local.data()));
  EXPECT_EQ(local[0], 24);
  EXPECT_EQ(local[15], 39);
  EXPECT_EQ(local[16], 0);
  EXPECT_EQ(local[24], 64);
  EXPECT_EQ(local[48 + 15], 119);
}

TEST(Slice, MicroBatchAndCoordinate) {
  // [4@(mb, dp), 3] with mb = 2, dp = 2: micro-batch m of rank r holds row 2m + r.
  plan::ByCoord row;
  row.values = {0, 1, 2, 3};
  plan::Slice slice{{4, 3}, {row, 0}, {1, 3}, {1, 3}};
  std::vector<uint8_t> global(12), local(3);
  std::iota(global.begin(), global.end(), 0);
  for (int64_t microBatch : {0, 1})
    for (int64_t coordinate : {0, 1}) {
      checkTypes(slice, {coordinate, microBatch, 2});
      SliceCopy(slice, 1, {coordinate, microBatch, 2})
          .gather(reinterpret_cast<std::byte *>(global.data()), reinterpret_cast<std::byte *>(local.data()));
      EXPECT_EQ(local[0], (2 * microBatch + coordinate) * 3);
    }
}
