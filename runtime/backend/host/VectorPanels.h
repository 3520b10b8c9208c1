// What VectorProduct's two ways of multiplying read: lines of a matrix beside each other, widened to f32, one step of k
// after the other.
#pragma once

#include "runtime/backend/host/Product.h"
#include "runtime/backend/host/Vectors.h"

#include <algorithm>

namespace hpc::host {

#define HPC_AVX2 [[gnu::target("avx2,fma,f16c")]]

namespace vectors {

constexpr int lanes = 8;
using Float = Vectors<lanes>::Float;

/// Of k at a time: the chain of a sum, in both ways.
constexpr int64_t depthAtOnce = 768;
/// Rows of A that are packed at once, which lie in L2 or in L3.
constexpr int64_t rowsAtOnce = 384;
/// Columns of B that are packed at once, which lie in L2.
constexpr int64_t columnsAtOnce = 64;

/// Asks for the first line of each row of C before its sums are computed: where rows are pages apart, stores would
/// wait.
HPC_INLINE void askForRows(const float *c, int64_t ld, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i)
    __builtin_prefetch(c + i * ld, 0, 2);
}

/// Lane i of vector j becomes lane j of vector i.
HPC_INLINE void transpose(Float (&v)[lanes]) {
  Float pairs[lanes], fours[lanes];
  for (int i = 0; i < lanes; i += 2) {
    pairs[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < lanes; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = __builtin_shufflevector(pairs[i + j], pairs[i + 2 + j], 0, 1, 8, 9, 4, 5, 12, 13);
      fours[i + 2 * j + 1] = __builtin_shufflevector(pairs[i + j], pairs[i + 2 + j], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < lanes / 2; ++i) {
    v[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/// What is packed of a matrix: `count` lines (rows of A, columns of B), `depth` deep.
template <typename T> struct Source {
  const T *data;
  int64_t ld;
  bool along; ///< a line lies in memory one number after the other; else the lines of one depth do
  int64_t count, depth;
};

/// to[x * width + i] = line i at depth x; 0 of lines that are not there.
template <int width, typename T> HPC_INLINE void packPanel(const Source<T> &from, float *to) {
  int64_t x = 0;
  if (!from.along && from.count == width && width % lanes == 0) {
    for (; x < from.depth; ++x)
      for (int i = 0; i < width; i += lanes) {
        Float v;
        Vectors<lanes>::load(from.data + x * from.ld + i, v);
        std::memcpy(to + x * width + i, &v, sizeof(v));
      }
    return;
  }
  for (; from.along && x + lanes <= from.depth; x += lanes)
    for (int first = 0; first < width; first += lanes) {
      Float v[lanes] = {};
      for (int i = 0; i < lanes && first + i < std::min<int64_t>(width, from.count); ++i)
        Vectors<lanes>::load(from.data + (first + i) * from.ld + x, v[i]);
      transpose(v);
      for (int step = 0; step < lanes; ++step)
        std::memcpy(to + (x + step) * width + first, &v[step], sizeof(float) * size_t(std::min(lanes, width - first)));
    }
  const int64_t line = from.along ? from.ld : 1, step = from.along ? 1 : from.ld;
  for (; x < from.depth; ++x)
    for (int64_t i = 0; i < width; ++i)
      to[x * width + i] = i < from.count ? widen(from.data[i * line + x * step]) : 0.0f;
}

template <int width, typename T> HPC_INLINE void packPanels(const Source<T> &from, float *to) {
  for (int64_t i = 0; i < from.count; i += width)
    packPanel<width>(Source<T>{from.data + i * (from.along ? from.ld : 1), from.ld, from.along,
                               std::min<int64_t>(width, from.count - i), from.depth},
                     to + i * from.depth);
}

template <int width, typename T>
HPC_AVX2 inline void packAs(const ConstMatrix &matrix, bool along, int64_t at, int64_t count, int64_t x, int64_t depth,
                            float *to) {
  const T *data = reinterpret_cast<const T *>(matrix.data) + (along ? at * matrix.ld + x : x * matrix.ld + at);
  packPanels<width>(Source<T>{data, matrix.ld, along, count, depth}, to);
}

/// Lines at .. at+count-1 at depths x .. x+depth-1.
template <int width>
inline void pack(const ConstMatrix &matrix, bool along, int64_t at, int64_t count, int64_t x, int64_t depth,
                 float *to) {
  switch (matrix.dtype) {
  case DType::BF16:
    return packAs<width, BFloat>(matrix, along, at, count, x, depth, to);
  case DType::F16:
    return packAs<width, _Float16>(matrix, along, at, count, x, depth, to);
  case DType::I8:
    return packAs<width, int8_t>(matrix, along, at, count, x, depth, to);
  default:
    return packAs<width, float>(matrix, along, at, count, x, depth, to);
  }
}

/// C = or += A * B where the columns of B lie in memory as rows, with the bits of the other way. Scratch: rowsAtOnce
/// lines, then columnsAtOnce lines, all depthAtOnce deep.
void multiplyTransposed(const Product &product, float *left, float *right);

} // namespace vectors

} // namespace hpc::host
