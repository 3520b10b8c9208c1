// Products whose B is the windows of an image, against loops over the definition of a convolution in double precision:
// numbers whose sums are exact in f32, NaN in C before, so that what is left out, taken twice or read beside shows.
#include "runtime/backend/host/Convolution.h"
#include "runtime/backend/host/HostDevice.h"
#include "test/unit/runtime/host/ProductCase.h"

using namespace hpc;

namespace {

struct WindowCase {
  const char *name;
  int64_t batch, groups, rows;       ///< rows of C in a group: channels out
  plan::Windows windows;             ///< channels in, of a group
  DType type = DType::F32, result = DType::F32;
  bool transpose = false, add = false;
  int64_t k = -1; ///< fewer rows of windows than there are: channels that are padding
};

/// Small multiples of 1/8, exact in bf16, with sums below 2^20: exact in f32.
std::vector<std::byte> windowNumbers(DType type, int64_t count, int64_t seed) {
  std::vector<std::byte> list(size_t(count * byteSize(type)));
  for (int64_t i = 0; i < count; ++i)
    test::set(type, list.data(), i, double((i * 7919 + seed) % 17 - 8) / 8);
  return list;
}

/// image[channel, position of window `column` at offset `row`], 0 outside.
double windowElement(const WindowCase &test, const std::byte *image, int64_t first, int64_t row, int64_t column) {
  const plan::Windows &w = test.windows;
  int64_t channel = row / w.rowsOfChannel(), offset = row % w.rowsOfChannel(), at = 0, step = 1;
  for (size_t d = w.image.size(); d-- > 0;) {
    const int64_t position = column % w.counts[d] * w.strides[d] + offset % w.sizes[d] * w.dilations[d] - w.low[d];
    column /= w.counts[d];
    offset /= w.sizes[d];
    if (position < 0 || position >= w.image[d])
      return 0;
    at += position * step;
    step *= w.image[d];
  }
  return test::get(test.type, image, first + channel * step + at);
}

struct WindowOutcome {
  std::vector<std::byte> c;
  bool isConvolution = false, isPacked = false;
};

WindowOutcome runWindows(const WindowCase &test, int64_t threads, bool tiles, bool packs, bool check) {
  const plan::Windows &w = test.windows;
  const int64_t all = w.channels * w.rowsOfChannel(), used = test.k < 0 ? all : test.k, positions = w.columns(),
                m = test.rows, n = test.transpose ? used : positions, k = test.transpose ? positions : used,
                image = w.channels * w.imageSize(), products = test.batch * test.groups;
  const bool shares = !test.transpose; // the weight, over the batch
  plan::Gemm gemm;
  gemm.a.dtype = gemm.b.dtype = test.type;
  gemm.c.dtype = test.result;
  gemm.accumulate = test.type == DType::F64 ? DType::F64 : DType::F32;
  gemm.a.ld = k;
  gemm.c.ld = n;
  gemm.a.packed = packs;
  gemm.b.transpose = test.transpose;
  gemm.windows = w;
  gemm.m = m, gemm.n = n, gemm.k = k;
  gemm.batch = {test.batch, test.groups};
  gemm.a.stride = {shares ? 0 : test.groups * m * k, m * k};
  gemm.b.stride = {test.groups * image, image};
  gemm.c.stride = {test.groups * m * n, m * n};
  const int64_t matrices = shares ? test.groups : products;
  std::vector<std::byte> a = windowNumbers(test.type, matrices * m * k, 1), b = windowNumbers(test.type, products * image, 2), stored = a,
                         c = windowNumbers(test.result, products * m * n, 3), before = c;
  if (!test.add)
    for (int64_t i = 0; i < products * m * n; ++i)
      test::set(test.result, c.data(), i, NAN);
  std::unique_ptr<ThreadPool> pool = std::move(*ThreadPool::create(threads, false));
  host::HostDevice device(*pool, tiles);
  const GemmCall call{gemm, m, n, k, test.add, a.data(), b.data(), c.data()};
  WindowOutcome run;
  run.isConvolution = host::Convolution::create(call, tiles) != nullptr;
  Expected<GemmHandle> handle = device.prepare(call);
  EXPECT_TRUE(handle.ok()) << test.name;
  if (packs)
    EXPECT_TRUE(device.pack(gemm, a.data(), k, matrices * m, {*handle}).ok()) << test.name;
  run.isPacked = a != stored;
  EXPECT_TRUE(device.gemm(*handle, call).ok()) << test.name;
  run.c = c;
  for (int64_t product = 0; check && product < products; ++product) {
    const int64_t matrix = shares ? product % test.groups : product;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = test.add ? test::get(test.result, before.data(), (product * m + i) * n + j) : 0;
        for (int64_t x = 0; x < k; ++x)
          sum += test::get(test.type, stored.data(), (matrix * m + i) * k + x) *
                 windowElement(test, b.data(), product * image, test.transpose ? j : x, test.transpose ? x : j);
        const double got = test::get(test.result, c.data(), (product * m + i) * n + j);
        EXPECT_EQ(got, sum) << test.name << ", product " << product << ", row " << i << ", column " << j << ", " << threads << " threads";
        if (got != sum)
          return run;
      }
  }
  return run;
}

const plan::Windows line{3, {50}, {4}, {24}, {2}, {1}, {0}}, // the last element is in no window
    padded{5, {30}, {3}, {15}, {2}, {2}, {2}}, square{2, {9, 11}, {3, 3}, {9, 11}, {1, 1}, {1, 1}, {1, 1}},
    uneven{3, {10, 7}, {2, 3}, {5, 6}, {2, 1}, {3, 2}, {1, 3}}, cube{2, {5, 6, 7}, {3, 2, 3}, {5, 3, 4}, {1, 2, 2}, {1, 1, 1}, {1, 0, 1}},
    // As many channels as oneDNN wants.
    deepLine{32, {300}, {7}, {100}, {3}, {1}, {2}}, deepSquare{16, {20, 19}, {3, 3}, {20, 19}, {1, 1}, {1, 1}, {1, 1}},
    strided{24, {33, 35}, {3, 5}, {16, 18}, {2, 2}, {1, 1}, {0, 3}}, dilated{16, {30, 40}, {3, 3}, {26, 38}, {1, 1}, {3, 2}, {1, 1}},
    deepCube{8, {9, 8, 10}, {3, 3, 3}, {9, 4, 5}, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}}, few{130, {7, 7}, {3, 3}, {7, 7}, {1, 1}, {1, 1}, {1, 1}},
    narrow{13, {12, 12}, {3, 3}, {12, 12}, {1, 1}, {1, 1}, {1, 1}}, one{40, {17, 9}, {1, 1}, {9, 5}, {2, 2}, {1, 1}, {0, 0}};

const WindowCase columnCases[] = {{"line", 2, 1, 5, line},
                        {"padded", 1, 3, 4, padded},
                        {"square", 3, 2, 7, square},
                        {"uneven", 2, 1, 9, uneven},
                        {"cube", 2, 2, 3, cube},
                        {"every second position", 2, 1, 40, one},
                        {"nothing but padding", 1, 1, 9, {12, {4, 4}, {3, 3}, {2, 4}, {1, 1}, {1, 1}, {6, 1}}},
                        {"in parts", 1, 1, 70, {9, {6000}, {10}, {5991}, {1}, {1}, {0}}},
                        {"bf16", 2, 1, 65, deepSquare, DType::BF16, DType::F32},
                        {"f16", 2, 1, 9, square, DType::F16, DType::F32},
                        {"f64", 1, 2, 9, uneven, DType::F64, DType::F64},
                        {"adds", 2, 2, 6, square, DType::F32, DType::F32, false, true},
                        {"fewer channels", 2, 1, 20, deepSquare, DType::F32, DType::F32, false, false, 13 * 9},
                        {"gradient of a line", 2, 1, 5, line, DType::F32, DType::F32, true},
                        {"gradient of groups", 3, 2, 7, square, DType::F32, DType::F32, true},
                        {"gradient of uneven", 2, 1, 9, uneven, DType::F32, DType::F32, true},
                        {"gradient of a cube", 2, 1, 3, cube, DType::F32, DType::F32, true},
                        {"gradient of many", 2, 1, 40, deepSquare, DType::F32, DType::F32, true, true},
                        {"gradient in bf16", 2, 1, 40, deepSquare, DType::BF16, DType::F32, true}};
const WindowCase convolutionCases[] = {{"deep line", 2, 1, 48, deepLine},
                             {"deep square", 1, 1, 64, deepSquare},
                             {"groups", 2, 3, 32, deepSquare},
                             {"strided", 2, 1, 40, strided},
                             {"dilated", 1, 1, 37, dilated},
                             {"deep cube", 2, 1, 24, deepCube},
                             {"rows in parts", 1, 1, 256, few},
                             {"odd channels", 1, 2, 11, narrow}};

} // namespace

// Channels, offsets, strides, dilations, paddings, groups and the batch, in every number of dims and every type.
TEST(WindowProduct, IsAConvolution) {
  for (const WindowCase &test : columnCases)
    for (bool tiles : {false, true})
      EXPECT_FALSE(runWindows(test, 1, tiles, false, true).isConvolution) << test.name;
  for (const WindowCase &test : convolutionCases)
    for (bool packs : {false, true})
      runWindows(test, 1, true, packs, true);
}

// Which thread computes a part is chance; it must not show.
TEST(WindowProduct, HasTheBitsOfOneThread) {
  for (const auto &list : {std::vector<WindowCase>(std::begin(columnCases), std::end(columnCases)),
                           std::vector<WindowCase>(std::begin(convolutionCases), std::end(convolutionCases))})
    for (const WindowCase &test : list) {
      const WindowOutcome alone = runWindows(test, 1, true, false, false);
      for (int64_t threads : {2, 5})
        EXPECT_EQ(runWindows(test, threads, true, true, false).c, alone.c) << test.name << " on " << threads << " threads";
    }
}

// A machine with AVX2 has fast code for them all; without it nothing here would say that oneDNN is not asked any more.
TEST(WindowProduct, OneDnnConvolves) {
  if (!__builtin_cpu_supports("avx2"))
    GTEST_SKIP() << "oneDNN has no fast convolutions here";
  int packed = 0;
  for (const WindowCase &test : convolutionCases) {
    const WindowOutcome run = runWindows(test, 1, true, true, false);
    EXPECT_TRUE(run.isConvolution) << test.name;
    packed += run.isPacked;
  }
  EXPECT_GT(packed, 0);
}

// What is not in memory needs little of it: neither the columns (19 MB here) nor the image are written a second time.
TEST(WindowProduct, TakesLittleMemory) {
  for (const WindowCase &test : {WindowCase{"columns", 1, 1, 16, {4, {130000}, {9}, {130000}, {1}, {1}, {4}}},
                           WindowCase{"convolution", 1, 1, 16, {32, {40000}, {5}, {40000}, {1}, {1}, {2}}}}) {
    plan::Gemm gemm;
    gemm.windows = test.windows;
    const int64_t k = test.windows.channels * test.windows.rowsOfChannel(), n = test.windows.columns();
    gemm.a.ld = k, gemm.c.ld = n, gemm.m = test.rows, gemm.n = n, gemm.k = k;
    host::HostDevice device;
    ASSERT_TRUE(device.prepare({gemm, test.rows, n, k, false, nullptr, nullptr, nullptr}).ok());
    EXPECT_LT(device.scratchBytes(), int64_t(4) << 20) << test.name;
  }
}
