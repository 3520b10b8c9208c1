// Four rows of B as it lies in memory at a time: that many streams the core follows by itself, and what comes after them
// is asked for. Written once, without intrinsics, and compiled for each kind of vectors.
#include "runtime/backend/host/FewRows.h"

#include "runtime/backend/host/Vectors.h"

namespace hpc::host {

namespace {

constexpr int streams = 4;

/// Rows x .. x+count-1 of B, times their columns of A.
template <int lanes, int count, typename T> HPC_INLINE void addRows(const FewRows &product, const T *b, int64_t x) {
  using Float = typename Vectors<lanes>::Float;
  const int64_t whole = product.columns / lanes * lanes;
  const T *rows[count];
  for (int i = 0; i < count; ++i)
    rows[i] = b + (x + i) * product.ld;
  for (int64_t j = 0; j < whole; j += lanes) {
    Float right[count];
    for (int i = 0; i < count; ++i) {
      Vectors<lanes>::load(rows[i] + j, right[i]);
      __builtin_prefetch(rows[i] + count * product.ld + j);
    }
    for (int64_t row = 0; row < product.rows; ++row) {
      float *const to = product.sums + row * product.columns + j;
      const float *const left = product.a + row * product.depth + x;
      Float sum;
      Vectors<lanes>::load(to, sum);
      for (int i = 0; i < count; ++i)
        sum = __builtin_elementwise_fma(Float(left[i]), right[i], sum);
      std::memcpy(to, &sum, sizeof(sum));
    }
  }
  for (int64_t row = 0; row < product.rows; ++row)
    for (int64_t j = whole; j < product.columns; ++j)
      for (int i = 0; i < count; ++i) {
        float &sum = product.sums[row * product.columns + j];
        sum = __builtin_fmaf(product.a[row * product.depth + x + i], widen(rows[i][j]), sum);
      }
}

/// Columns j .. j+count-1 of B, which lie in memory as rows, for one row of A after the other: all but the first find
/// them in the cache.
template <int lanes, int count, typename T> HPC_INLINE void addColumns(const FewRows &product, const T *b, int64_t j) {
  using Float = typename Vectors<lanes>::Float;
  const int64_t whole = product.depth / lanes * lanes;
  for (int64_t row = 0; row < product.rows; ++row) {
    const float *const left = product.a + row * product.depth;
    Float sums[count] = {};
    for (int64_t x = 0; x < whole; x += lanes) {
      Float a;
      Vectors<lanes>::load(left + x, a);
      for (int i = 0; i < count; ++i) {
        Float right;
        Vectors<lanes>::load(b + (j + i) * product.ld + x, right);
        if (row == 0)
          __builtin_prefetch(b + (j + i + count) * product.ld + x);
        sums[i] = __builtin_elementwise_fma(a, right, sums[i]);
      }
    }
    for (int i = 0; i < count; ++i) {
      for (int half = lanes / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane)
          sums[i][lane] += sums[i][lane + half];
      float sum = sums[i][0];
      for (int64_t x = whole; x < product.depth; ++x)
        sum = __builtin_fmaf(left[x], widen(b[(j + i) * product.ld + x]), sum);
      product.sums[row * product.columns + j + i] += sum;
    }
  }
}

template <int lanes, typename T> HPC_INLINE void multiply(const FewRows &product) {
  const T *const b = reinterpret_cast<const T *>(product.b);
  const int64_t count = product.transposed ? product.columns : product.depth, whole = count / streams * streams;
  for (int64_t i = 0; i < whole; i += streams)
    product.transposed ? addColumns<lanes, streams>(product, b, i) : addRows<lanes, streams>(product, b, i);
  for (int64_t i = whole; i < count; ++i)
    product.transposed ? addColumns<lanes, 1>(product, b, i) : addRows<lanes, 1>(product, b, i);
}

template <int lanes> HPC_INLINE void multiplyTypes(const FewRows &product) {
  switch (product.dtype) {
  case DType::BF16:
    return multiply<lanes, BFloat>(product);
  case DType::F16:
    return multiply<lanes, _Float16>(product);
  case DType::I8:
    return multiply<lanes, int8_t>(product);
  default:
    return multiply<lanes, float>(product);
  }
}

[[gnu::target("avx512f,avx512bw,avx512vl,fma,f16c")]] void multiplyWide(const FewRows &product) {
  multiplyTypes<16>(product);
}
[[gnu::target("avx2,fma,f16c")]] void multiplyNarrow(const FewRows &product) { multiplyTypes<8>(product); }

bool hasWide() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("f16c");
  return has;
}

} // namespace

bool hasFewRows() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("f16c");
  return has;
}

void multiplyFewRows(const FewRows &product, bool mayBeWide) {
  mayBeWide && hasWide() ? multiplyWide(product) : multiplyNarrow(product);
}

} // namespace hpc::host
