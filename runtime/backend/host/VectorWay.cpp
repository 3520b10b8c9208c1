// Three kinds of vectors, and all loops compiled for each of them.
#include "runtime/backend/host/VectorWay.h"

#include "runtime/backend/host/FewRows.h"
#include "runtime/backend/host/VectorPanels.h"

#include <array>
#include <immintrin.h>
#include <utility>

namespace hpc::host {

namespace vectors {

namespace {

/// The innermost loops, and the code that widens B before them, compiled for the kind of vectors around them.
#define HPC_LOOPS(Kind, features)                                                                                      \
  template <int rows>                                                                                                  \
  [[gnu::target(features)]] static void panels(int64_t steps, const float *a, const float *b, Ahead ahead, bool add,   \
                                               float *c, int64_t ld) {                                                 \
    multiplyPanels<Kind, rows>(steps, a, b, ahead, add, c, ld);                                                        \
  }                                                                                                                    \
  template <int vectors, int columns>                                                                                  \
  [[gnu::target(features)]] static void lines(int64_t steps, const float *a, const float *b, int64_t ldb, Ahead ahead, \
                                              bool add, float *c, int64_t ldc, int64_t rows) {                         \
    multiplyLines<Kind, columns, vectors>(steps, a, b, ldb, ahead, add, c, ldc, rows);                                 \
  }                                                                                                                    \
  template <typename Of, typename T>                                                                                   \
  [[gnu::target(features)]] static void widen(const T *from, int64_t depth, float *to) {                               \
    widenLine<lanes, Of>(from, depth, to);                                                                             \
  }
#define HPC_AVX512 "prfchw,avx512f,avx512bw,avx512dq,avx512vl,fma,f16c"

/// Twelve vectors of sums, of the sixteen that there are.
struct Avx2 {
  static constexpr int lanes = 8, panelRows = 6, lineColumns = 6;
  static constexpr bool hasLongSteps = false;
  using Float = Vectors<lanes>::Float;

  HPC_INLINE static void multiply(const Float &left, const Float &right, Float &sum) {
    sum = __builtin_elementwise_fma(left, right, sum);
  }
  HPC_LOOPS(Avx2, "avx2,fma,f16c")
};

/// 24 vectors of sums, of 32; with 28 a loop takes a hundred cycles more to begin and end (Zen 4). A transposed B has
/// eight lines: they lie a multiple of a page apart at times, and so in the eight places that L1 has for those.
struct Avx512 {
  static constexpr int lanes = 16, panelRows = 12, lineColumns = 8;
  static constexpr bool hasLongSteps = true;
  using Float = Vectors<lanes>::Float;

  HPC_INLINE static void multiply(const Float &left, const Float &right, Float &sum) {
    sum = __builtin_elementwise_fma(left, right, sum);
  }
  HPC_LOOPS(Avx512, HPC_AVX512)
};

struct Avx512Pairs : Avx512 {
  /// sum + left.second * right.second + left.first * right.first; numbers below 2^-126 count as 0.
  [[gnu::target(HPC_AVX512 ",avx512bf16")]] static inline void multiply(const Float &left, const Float &right,
                                                                        Float &sum) {
    sum = _mm512_dpbf16_ps(sum, __m512bh(left), __m512bh(right));
  }
  HPC_LOOPS(Avx512Pairs, HPC_AVX512 ",avx512bf16")
};

template <typename Kind, int... rows>
constexpr std::array<MultiplyPanels, sizeof...(rows) + 1> byRows(std::integer_sequence<int, rows...>) {
  return {nullptr, Kind::template panels<rows + 1>...};
}
template <typename Kind, int vectors, int... columns>
constexpr std::array<MultiplyLines, sizeof...(columns) + 1> byColumns(std::integer_sequence<int, columns...>) {
  return {nullptr, Kind::template lines<vectors, columns + 1>...};
}
template <typename Kind> constexpr auto panelsOf = byRows<Kind>(std::make_integer_sequence<int, Kind::panelRows>());
template <typename Kind, int vectors>
constexpr auto linesOf = byColumns<Kind, vectors>(std::make_integer_sequence<int, Kind::lineColumns>());

template <typename Kind, template <typename> class Step> constexpr VectorWay wayOf() {
  constexpr int columns = 2 * Kind::lanes;
  static_assert(Kind::panelRows <= mostPanelRows && columns <= mostPanelRows && columnsAtOnce % columns == 0);
  return {Step<BFloat>::depth,
          Kind::lanes,
          Kind::panelRows,
          columns,
          Kind::lineColumns,
          Kind::hasLongSteps ? INT64_MAX : 8,
          panelsOf<Kind>.data(),
          {nullptr, linesOf<Kind, 1>.data(), linesOf<Kind, 2>.data()},
          pack<Step, Kind::panelRows>,
          pack<Step, columns>,
          widenLines<Kind, Step>};
}

} // namespace

const VectorWay avx2 = wayOf<Avx2, OneNumber>(), avx512 = wayOf<Avx512, OneNumber>(),
                avx512Pairs = wayOf<Avx512Pairs, PairOfBFloats>();

} // namespace vectors

bool machineHas(const VectorWay &way) {
  static const bool hasAvx512 = hasFewRows() && __builtin_cpu_supports("avx512f") &&
                                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                                __builtin_cpu_supports("avx512vl"),
                    hasPairs = hasAvx512 && __builtin_cpu_supports("avx512bf16");
  return &way == &vectors::avx2 ? hasFewRows() : &way == &vectors::avx512 ? hasAvx512 : hasPairs;
}

bool takesTypes(const VectorWay &way, DType a, DType b) {
  auto isNumber = [](DType type) { return type == DType::F32 || type == DType::F16 || type == DType::BF16; };
  const bool arePairs = a == DType::BF16 && (b == DType::BF16 || b == DType::I8);
  return way.depthOfStep == 2 ? arePairs : isNumber(a) && (isNumber(b) || b == DType::I8);
}

const VectorWay *bestWay(DType a, DType b) {
  for (const VectorWay *way : {&vectors::avx512Pairs, &vectors::avx512, &vectors::avx2})
    if (machineHas(*way) && takesTypes(*way, a, b))
      return way;
  return nullptr;
}

} // namespace hpc::host
