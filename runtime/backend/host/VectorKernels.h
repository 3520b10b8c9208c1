// The common parts of all micro-kernels' innermost loops, as templates over a kind of vectors: `lanes`, `panelRows`,
// `hasLongSteps` (see walkBySteps), and multiply(left, right, sum), which adds to a vector of sums. They are inlined
// into functions that are compiled for the kind.
#pragma once

#include "runtime/backend/host/VectorWay.h"
#include "runtime/backend/host/Vectors.h"

#include <algorithm>

namespace hpc::host::vectors {

/// The progress of a loop over steps through Ahead's lines and rows of C: at step x it has reached item x * count /
/// steps of `count`, in 32.32 bits, so that the loop needs no branch for it.
struct Progress {
  uint64_t at = 0, aStep;

  HPC_INLINE Progress(int64_t count, int64_t steps) : aStep((uint64_t(count) << 32) / uint64_t(steps)) {}
  HPC_INLINE int64_t whole() const { return int64_t(at >> 32); }
  HPC_INLINE int64_t part(int64_t of) const { return int64_t(((at & 0xffffffff) * uint64_t(of)) >> 32); }
  HPC_INLINE void step() { at += aStep; }
};

/// Prefetches a step's part of the memory that is read soon, in one cache line or two.
template <int lines> HPC_INLINE void ask(const Ahead &ahead, const Progress &progress) {
  const std::byte *const soon = ahead.from + progress.whole() * ahead.ld + progress.part(ahead.bytes);
  for (int line = 0; line < lines; ++line)
    __builtin_prefetch(soon + line * 64, 0, 2);
}

/// Prefetches memory that is written later: if rows of C are pages apart, stores would wait.
template <int lanes> HPC_INLINE void askFor(const float *c) {
  for (int lane = 0; lane < lanes; lane += 16)
    __builtin_prefetch(c + lane, 1);
}

/// step(x) for all steps; meanwhile prefetches the lines of `ahead`, and `rows` rows of C by askRow(row): some of these
/// with each line, since a core can have few requests in flight.
template <typename Step, typename AskRow>
HPC_INLINE void walkByLines(int64_t steps, const Ahead &ahead, int64_t rows, const AskRow &askRow, const Step &step) {
  const int64_t bytesAStep = ahead.bytes == 0 ? 0 : (ahead.bytes * ahead.count + steps - 1) / steps;
  int64_t x = 0, row = 0;
  for (int64_t line = 0; line < ahead.count; ++line) {
    const std::byte *soon = ahead.from + line * ahead.ld;
    const bool isLast = line + 1 == ahead.count; // of one, mostly: divisions would count
    const int64_t end = isLast ? steps : steps * (line + 1) / ahead.count;
    for (const int64_t lastRow = isLast ? rows : rows * (line + 1) / ahead.count; row < lastRow; ++row)
      askRow(row);
    HPC_ALIGNED for (; x < end; ++x, soon += bytesAStep) {
      __builtin_prefetch(soon, 0, 2);
      step(x);
    }
  }
}

/// The same where a step is long enough to hide the arithmetic of it: a line that ends would cost more.
template <int lines, typename Step, typename AskRow>
HPC_INLINE void walkBySteps(int64_t steps, const Ahead &ahead, int64_t rows, const AskRow &askRow, const Step &step) {
  Progress line(ahead.count, steps), row(rows, steps);
  HPC_ALIGNED for (int64_t x = 0; x < steps; ++x, line.step(), row.step()) {
    ask<lines>(ahead, line);
    askRow(row.whole());
    step(x);
  }
}

#define HPC_LAMBDA __attribute__((always_inline))

/// See MultiplyPanels: two vectors of columns.
template <typename Kind, int rows>
HPC_INLINE void multiplyPanels(int64_t steps, const float *a, const float *b, Ahead ahead, bool add, float *c,
                               int64_t ld) {
  using Float = typename Vectors<Kind::lanes>::Float;
  constexpr int64_t columns = 2 * Kind::lanes;
  Float sums[rows][2] = {};
  auto askRow = [&](int64_t row) HPC_LAMBDA { askFor<columns>(c + row * ld); };
  auto step = [&](int64_t x) HPC_LAMBDA {
    Float right[2];
    std::memcpy(right, b + x * columns, sizeof(right));
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < 2; ++j)
        Kind::multiply(Float(a[x * Kind::panelRows + i]), right[j], sums[i][j]);
  };
  if constexpr (Kind::hasLongSteps)
    walkBySteps<columns / 16>(steps, ahead, rows, askRow, step);
  else
    walkByLines(steps, ahead, rows, askRow, step);
  for (int i = 0; i < rows; ++i) {
    Float before[2] = {};
    if (add) {
      std::memcpy(before, c + i * ld, sizeof(before));
      sums[i][0] += before[0];
      sums[i][1] += before[1];
    }
    std::memcpy(c + i * ld, sums[i], sizeof(sums[i]));
  }
}

/// Lane i of vector j becomes lane j of vector i.
using Eight = Vectors<8>::Float;
HPC_INLINE void transpose(Eight (&v)[8]) {
  Eight pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = __builtin_shufflevector(pairs[i + j], pairs[i + 2 + j], 0, 1, 8, 9, 4, 5, 12, 13);
      fours[i + 2 * j + 1] = __builtin_shufflevector(pairs[i + j], pairs[i + 2 + j], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; ++i) {
    v[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/// See MultiplyLines: `columns` lines of B, at most eight, beside a panel of A, of whose rows 1 .. vectors * lanes are
/// there.
template <typename Kind, int columns, int vectors>
HPC_INLINE void multiplyLines(int64_t steps, const float *a, const float *b, int64_t ldb, Ahead ahead, bool add,
                              float *c, int64_t ldc, int64_t rows) {
  constexpr int lanes = Kind::lanes;
  using Float = typename Vectors<lanes>::Float;
  Float sums[columns][vectors] = {};
  walkByLines(
      steps, ahead, rows, [&](int64_t row) HPC_LAMBDA { askFor<1>(c + row * ldc); },
      [&](int64_t x) HPC_LAMBDA {
        Float left[vectors];
        std::memcpy(left, a + x * 2 * lanes, sizeof(left));
#pragma clang loop unroll(full)
        for (int j = 0; j < columns; ++j)
          for (int i = 0; i < vectors; ++i)
            Kind::multiply(left[i], Float(b[j * ldb + x]), sums[j][i]);
      });
  alignas(64) float stored[columns][vectors * lanes];
  std::memcpy(stored, sums, sizeof(stored));
  for (int64_t first = 0; first < rows; first += 8) {
    Eight turned[8] = {};
    for (int j = 0; j < columns; ++j)
      std::memcpy(&turned[j], &stored[j][first], sizeof(Eight));
    transpose(turned);
    for (int64_t i = first; i < std::min<int64_t>(rows, first + 8); ++i) {
      float *const to = c + i * ldc;
      Eight before = {};
      if (add)
        std::memcpy(&before, to, columns * sizeof(float));
      const Eight sum = add ? turned[i - first] + before : turned[i - first];
      std::memcpy(to, &sum, columns * sizeof(float));
    }
  }
}

} // namespace hpc::host::vectors
