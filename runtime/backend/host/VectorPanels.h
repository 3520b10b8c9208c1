// Panels of VectorProduct: lines of a matrix beside each other, one step of k after the other. A step is a number,
// widened to f32, or a pair of bf16 (VectorWay.h); both are 32 bits, and go through vectors and memory as f32. Packing
// is written for AVX2: wider shuffles take a machine as long as two of these.
#pragma once

#include "runtime/backend/host/VectorKernels.h"

namespace hpc::host::vectors {

#define HPC_AVX2 [[gnu::target("avx2,fma,f16c")]]

/// The content of a step of a line whose numbers are T.
template <typename T> struct OneNumber {
  static constexpr int64_t depth = 1;
  /// As many steps of one line as the vector has lanes.
  template <int lanes = 8> HPC_INLINE static void along(const T *from, typename Vectors<lanes>::Float &to) {
    Vectors<lanes>::load(from, to);
  }
  /// A step of eight lines.
  HPC_INLINE static void across(const T *from, int64_t, Eight &to) { Vectors<8>::load(from, to); }
  HPC_INLINE static float one(const T *from, int64_t, bool) { return widen(*from); }
};

/// Two numbers, the first one in the lower bits.
template <typename T> struct PairOfBFloats {
  static constexpr int64_t depth = 2;
  using Shorts = Vectors<8>::Short;
  using Words = Vectors<8>::Word;

  template <int lanes = 8> HPC_INLINE static void along(const T *from, typename Vectors<lanes>::Float &to) {
    typename Vectors<lanes>::Short both[2];
    bits<lanes>(from, both[0]);
    bits<lanes>(from + lanes, both[1]);
    std::memcpy(&to, both, sizeof(to));
  }
  HPC_INLINE static void across(const T *from, int64_t ld, Eight &to) {
    Shorts first, second;
    bits<8>(from, first);
    bits<8>(from + ld, second);
    const Words pairs = __builtin_convertvector(first, Words) | __builtin_convertvector(second, Words) << 16;
    std::memcpy(&to, &pairs, sizeof(to));
  }
  /// `apart`: from one number of the line to the next.
  HPC_INLINE static float one(const T *from, int64_t apart, bool hasSecond) {
    const uint32_t pair = bitsOf(*from) | (hasSecond ? bitsOf(from[apart]) << 16 : 0);
    float result;
    std::memcpy(&result, &pair, sizeof(result));
    return result;
  }

private:
  /// As bf16; int8 has no more than its bits.
  template <int lanes> HPC_INLINE static void bits(const T *from, typename Vectors<lanes>::Short &to) {
    if constexpr (std::is_same_v<T, BFloat>) {
      std::memcpy(&to, from, sizeof(to));
    } else {
      typename Vectors<lanes>::Float wide;
      Vectors<lanes>::load(from, wide);
      typename Vectors<lanes>::Word words;
      std::memcpy(&words, &wide, sizeof(words));
      to = __builtin_convertvector(words >> 16, typename Vectors<lanes>::Short);
    }
  }
  HPC_INLINE static uint32_t bitsOf(T number) {
    const float wide = widen(number);
    uint32_t word;
    std::memcpy(&word, &wide, sizeof(word));
    return word >> 16;
  }
};

/// What is packed of a matrix: `count` lines (rows of A, columns of B), `depth` deep.
template <typename T> struct Source {
  const T *data;
  int64_t ld;
  bool along; ///< a line lies in memory one number after the other; else the lines of one depth do
  int64_t count, depth;
};

/// Eight steps of at most eight lines, of which `stored` are written even where there are fewer.
template <typename Of, typename T>
HPC_INLINE void turnSquare(const T *from, int64_t ld, int64_t lines, float *to, int64_t width, int stored) {
  Eight v[8] = {};
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i)
    if (i < lines)
      Of::along(from + i * ld, v[i]);
  transpose(v);
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i)
    std::memcpy(to + i * width, &v[i], sizeof(float) * size_t(stored));
}

/// to[x * width + i] = step x of line i; 0 of lines that are not there.
template <template <typename> class Step, int width, typename T>
HPC_INLINE void packPanel(const Source<T> &from, float *to) {
  using Of = Step<T>;
  const int64_t whole = from.depth / Of::depth, steps = whole + (from.depth % Of::depth != 0);
  const int64_t line = from.along ? from.ld : 1, number = from.along ? 1 : from.ld, step = number * Of::depth;
  int64_t x = 0;
  if (!from.along && from.count == width && width >= 8)
    for (; x < whole; ++x)
      for (int i = 0; i < width; i += 8) {
        const int first = std::min(i, width - 8); // the last one may begin in the one before
        Eight v;
        Of::across(from.data + x * step + first, from.ld, v);
        std::memcpy(to + x * width + first, &v, sizeof(v));
      }
  constexpr int most = std::min(8, width);
  if (from.along && from.count == width)
    for (; x + 8 <= whole; x += 8)
#pragma clang loop unroll(full)
      for (int i = 0; i < width; i += most) {
        const int first = std::min(i, width - most); // likewise
        turnSquare<Of>(from.data + first * from.ld + x * step, from.ld, most, to + x * width + first, width, most);
      }
  for (; from.along && x + 8 <= whole; x += 8)
    for (int i = 0; i < width; i += most)
      turnSquare<Of>(from.data + i * from.ld + x * step, from.ld, from.count - i, to + x * width + i, width,
                     std::min(most, width - i));
  for (; x < steps; ++x)
    for (int64_t i = 0; i < width; ++i)
      to[x * width + i] = i < from.count ? Of::one(from.data + i * line + x * step, number, x < whole) : 0.0f;
}

template <template <typename> class Step, int width, typename T>
HPC_AVX2 inline void packAs(const ConstMatrix &matrix, bool along, int64_t at, int64_t count, int64_t x, int64_t depth,
                            float *to) {
  const T *data = reinterpret_cast<const T *>(matrix.data) + (along ? at * matrix.ld + x : x * matrix.ld + at);
  const int64_t steps = (depth + Step<T>::depth - 1) / Step<T>::depth;
  for (int64_t i = 0; i < count; i += width)
    packPanel<Step, width>(
        Source<T>{data + i * (along ? matrix.ld : 1), matrix.ld, along, std::min<int64_t>(width, count - i), depth},
        to + i * steps);
}

/// A line of `depth` numbers.
template <int lanes, typename Of, typename T> HPC_INLINE void widenLine(const T *from, int64_t depth, float *to) {
  const int64_t whole = depth / Of::depth, steps = whole + (depth % Of::depth != 0);
  int64_t step = 0;
  for (; step + lanes <= whole; step += lanes) {
    typename Vectors<lanes>::Float v;
    Of::template along<lanes>(from + step * Of::depth, v);
    std::memcpy(to + step, &v, sizeof(v));
  }
  for (; step < steps; ++step)
    to[step] = Of::one(from + step * Of::depth, 1, step < whole);
}

/// Calls f with a value of the type of the matrix, of those that have steps: pairs are of bf16, and of the int8 beside
/// it.
template <template <typename> class Step, typename F> inline void withTypeOf(const ConstMatrix &matrix, F f) {
  constexpr bool ofAnyType = Step<BFloat>::depth == 1;
  if (matrix.dtype == DType::BF16)
    return f(BFloat());
  if (matrix.dtype == DType::I8)
    return f(int8_t());
  if constexpr (ofAnyType)
    matrix.dtype == DType::F16 ? f(_Float16()) : f(float());
}

/// See PackPanels.
template <template <typename> class Step, int width>
void pack(const ConstMatrix &matrix, bool along, int64_t at, int64_t count, int64_t x, int64_t depth, float *to) {
  withTypeOf<Step>(matrix,
                   [&](auto type) { packAs<Step, width, decltype(type)>(matrix, along, at, count, x, depth, to); });
}

/// See WidenLines.
template <typename Kind, template <typename> class Step>
void widenLines(const ConstMatrix &matrix, int64_t at, int64_t count, int64_t x, int64_t depth, float *to) {
  withTypeOf<Step>(matrix, [&](auto type) {
    using Of = Step<decltype(type)>;
    const auto *from = reinterpret_cast<const decltype(type) *>(matrix.data) + at * matrix.ld + x;
    for (int64_t line = 0; line < count; ++line, from += matrix.ld, to += (depth + Of::depth - 1) / Of::depth)
      Kind::template widen<Of>(from, depth, to);
  });
}

} // namespace hpc::host::vectors
