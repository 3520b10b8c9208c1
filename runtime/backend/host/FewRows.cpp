// Reads four rows of B at a time, a quarter of B apart: the core prefetches so many streams by itself, if each
// continues for some pages. Written once, without intrinsics, and compiled for each kind of vectors.
#include "runtime/backend/host/FewRows.h"

#include "runtime/backend/host/Vectors.h"

#include <algorithm>

namespace hpc::host {

namespace {

constexpr int streams = 4;

/// With AVX-512 (Zen 4) prefetches two lines ahead of `from`, which is read. With AVX2 (Zen 3) it leaves that to the core: any
/// prefetch, of lines or of rows ahead, takes the place of its own.
template <int lanes, typename T> HPC_INLINE void askAhead(const T *from) {
  constexpr int64_t bytesAhead = 128;
  if constexpr (lanes == 16)
    __builtin_prefetch(reinterpret_cast<const char *>(from) + bytesAhead);
}

/// Vectors that a cache line of B's numbers becomes: each line is asked for once.
template <int lanes, typename T> constexpr int vectorsOfLine = 64 / int(sizeof(T)) / lanes;

/// B as it lies in memory, and how many of its rows are between those that are read at a time.
template <typename T> struct Rows {
  const T *data;
  int64_t ld, apart;

  HPC_INLINE const T *at(int64_t row, int64_t stream) const { return data + (row + stream * apart) * ld; }
};

/// `count` numbers of a row of A, each in all lanes.
template <int lanes, int count>
HPC_INLINE void loadFactors(const float *from, int64_t apart, typename Vectors<lanes>::Float (&factors)[count]) {
  for (int i = 0; i < count; ++i)
    factors[i] = from[i * apart];
}

/// to[lane] += factors[0] * right[0][lane] + factors[1] * right[1][lane] + ..., one after the other, of all lanes of
/// `vectors` vectors. `begins`: sums begin here, whatever lies in `to`.
template <int lanes, bool begins, int count, int vectors, typename Float>
HPC_INLINE void addProducts(const Float (&factors)[count], const Float (&right)[count][vectors], float *to) {
  for (int vector = 0; vector < vectors; ++vector) {
    Float sum = 0;
    if constexpr (!begins)
      Vectors<lanes>::load(to + vector * lanes, sum);
    for (int i = 0; i < count; ++i)
      sum = __builtin_elementwise_fma(factors[i], right[i][vector], sum);
    std::memcpy(to + vector * lanes, &sum, sizeof(sum));
  }
}

/// `count` rows of B from x on, times their columns of A, for columns first .. last-1, `vectors` whole vectors at a
/// time. The numbers of A's first row there stay in registers. `single`: A has one row.
template <int lanes, bool begins, int count, int vectors, bool single, typename T>
HPC_INLINE void addRowVectors(const FewRows &product, Rows<T> b, int64_t x, int64_t first, int64_t last) {
  using Float = typename Vectors<lanes>::Float;
  constexpr int atOnce = vectors % 2 ? 1 : 2;                     // a number of A is loaded once for both
  const int64_t columns = product.columns, depth = product.depth; // here, since stores could change the fields
  const int64_t rows = single ? 1 : product.rows, apart = b.apart * b.ld;
  const float *const a = product.a + x;
  const T *const from = b.at(x, 0);
  float *const sums = product.sums;
  Float ofFirstRow[count], right[count][atOnce];
  loadFactors<lanes>(a, b.apart, ofFirstRow);
  for (int64_t j = first; j < last; j += vectors * lanes) {
    for (int i = 0; i < count; ++i)
      askAhead<lanes>(from + i * apart + j);
#pragma clang loop unroll(full)
    for (int vector = 0; vector < vectors; vector += atOnce) {
      const int64_t at = j + vector * lanes;
      for (int i = 0; i < count; ++i)
        for (int each = 0; each < atOnce; ++each)
          Vectors<lanes>::load(from + i * apart + at + each * lanes, right[i][each]);
      addProducts<lanes, begins>(ofFirstRow, right, sums + at);
      for (int64_t row = 1; row < rows; ++row) {
        Float factors[count];
        loadFactors<lanes>(a + row * depth, b.apart, factors);
        addProducts<lanes, begins>(factors, right, sums + row * columns + at);
      }
    }
  }
}

template <int lanes, bool begins, int count, bool single, typename T>
HPC_INLINE void addWholeVectors(const FewRows &product, Rows<T> b, int64_t x, int64_t whole) {
  constexpr int64_t line = vectorsOfLine<lanes, T> * lanes;
  addRowVectors<lanes, begins, count, vectorsOfLine<lanes, T>, single>(product, b, x, 0, whole / line * line);
  addRowVectors<lanes, begins, count, 1, single>(product, b, x, whole / line * line, whole);
}

template <int lanes, bool begins, int count, typename T>
HPC_INLINE void addRows(const FewRows &product, Rows<T> b, int64_t x) {
  const int64_t whole = product.columns / lanes * lanes;
  product.rows == 1 ? addWholeVectors<lanes, begins, count, true>(product, b, x, whole)
                    : addWholeVectors<lanes, begins, count, false>(product, b, x, whole);
  for (int64_t row = 0; row < product.rows; ++row)
    for (int64_t j = whole; j < product.columns; ++j) {
      float &to = product.sums[row * product.columns + j], sum = begins ? 0 : to;
      for (int i = 0; i < count; ++i)
        sum = __builtin_fmaf(product.a[row * product.depth + x + i * b.apart], widen(b.at(x, i)[j]), sum);
      to = sum;
    }
}

/// `count` columns of B from j on, which lie in memory as rows, for rows row .. row+rows-1 of A.
template <int lanes, int count, int rows, typename T>
HPC_INLINE void addColumnVectors(const FewRows &product, Rows<T> b, int64_t j, int64_t row) {
  using Float = typename Vectors<lanes>::Float;
  constexpr int64_t line = vectorsOfLine<lanes, T> * lanes;
  const int64_t depth = product.depth, whole = depth / lanes * lanes;
  const float *const left = product.a + row * depth;
  Float sums[rows][count] = {};
  for (int64_t x = 0; x < whole;) {
    if (row == 0)
      for (int i = 0; i < count; ++i)
        askAhead<lanes>(b.at(j, i) + x);
    for (const int64_t end = std::min(x + line, whole); x < end; x += lanes) {
      Float factors[rows];
      for (int r = 0; r < rows; ++r)
        Vectors<lanes>::load(left + r * depth + x, factors[r]);
      for (int i = 0; i < count; ++i) {
        Float right;
        Vectors<lanes>::load(b.at(j, i) + x, right);
        for (int r = 0; r < rows; ++r)
          sums[r][i] = __builtin_elementwise_fma(factors[r], right, sums[r][i]);
      }
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < count; ++i) {
      Float &parts = sums[r][i];
      for (int half = lanes / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane)
          parts[lane] += parts[lane + half];
      float sum = parts[0];
      for (int64_t x = whole; x < depth; ++x)
        sum = __builtin_fmaf(left[r * depth + x], widen(b.at(j, i)[x]), sum);
      product.sums[(row + r) * product.columns + j + i * b.apart] = sum;
    }
}

/// All rows of A, two at a time: all but the first find the columns in the cache.
template <int lanes, int count, typename T> HPC_INLINE void addColumns(const FewRows &product, Rows<T> b, int64_t j) {
  int64_t row = 0;
  for (; row + 2 <= product.rows; row += 2)
    addColumnVectors<lanes, count, 2>(product, b, j, row);
  if (row < product.rows)
    addColumnVectors<lanes, count, 1>(product, b, j, row);
}

/// `count` rows of B as it lies in memory from `row` on. `begins`: they are the first.
template <int lanes, bool begins, int count, typename T>
HPC_INLINE void addStored(const FewRows &product, Rows<T> b, int64_t row) {
  product.transposed ? addColumns<lanes, count>(product, b, row) : addRows<lanes, begins, count>(product, b, row);
}

template <int lanes, typename T> HPC_INLINE void multiply(const FewRows &product) {
  const int64_t count = product.transposed ? product.columns : product.depth, apart = count / streams;
  const Rows<T> b{reinterpret_cast<const T *>(product.b), product.ld, apart};
  if (apart > 0)
    addStored<lanes, true, streams>(product, b, 0);
  else
    addStored<lanes, true, 1>(product, b, 0);
  for (int64_t row = 1; row < apart; ++row)
    addStored<lanes, false, streams>(product, b, row);
  for (int64_t row = std::max<int64_t>(apart * streams, 1); row < count; ++row)
    addStored<lanes, false, 1>(product, b, row);
}

template <int lanes> HPC_INLINE void sumParts(const float *parts, int64_t count, int64_t apart, int64_t columns, float *sums) {
  typename Vectors<lanes>::Float sum, part;
  int64_t j = 0;
  for (; j + lanes <= columns; j += lanes) {
    Vectors<lanes>::load(sums + j, sum);
    for (int64_t each = 0; each < count; ++each) {
      Vectors<lanes>::load(parts + each * apart + j, part);
      sum += part;
    }
    std::memcpy(sums + j, &sum, sizeof(sum));
  }
  for (; j < columns; ++j)
    for (int64_t each = 0; each < count; ++each)
      sums[j] += parts[each * apart + j];
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
[[gnu::target("avx2,fma,f16c")]] void sumNarrow(const float *parts, int64_t count, int64_t apart, int64_t columns, float *sums) {
  sumParts<8>(parts, count, apart, columns, sums);
}

bool hasWide() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("f16c");
  return has;
}

} // namespace

bool hasFewRows() {
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  return has;
}

void multiplyFewRows(const FewRows &product, bool mayBeWide) {
  mayBeWide &&hasWide() ? multiplyWide(product) : multiplyNarrow(product);
}

void addRowParts(const float *parts, int64_t count, int64_t apart, int64_t columns, float *sums) {
  sumNarrow(parts, count, apart, columns, sums);
}

} // namespace hpc::host
