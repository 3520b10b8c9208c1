// The micro-kernels in which x86-64's vectors multiply panels, one for each kind of vectors: AVX2's and AVX-512's
// multiply numbers of f32, AVX512-BF16's pairs of bf16 that are neighbours along k. The unit of multiplication is a
// *step* of k, and 32 bits of a panel, in all of them, so that cutting, packing and walking are written once
// (VectorProduct, TransposedProduct).
#pragma once

#include "runtime/backend/host/Product.h"

namespace hpc::host {

/// Memory that is read soon: `count` lines of `bytes` bytes, `ld` bytes apart, prefetched one after the other while a
/// panel is multiplied. If nothing is to be prefetched, it points to valid memory: each prefetch of address 0 would
/// search the page tables.
struct Ahead {
  const std::byte *from = nullptr;
  int64_t ld = 0, bytes = 0, count = 1;
};

/// c[rows, columns], rows `ld` apart, = or += a panel of A times a panel of B.
using MultiplyPanels = void (*)(int64_t steps, const float *a, const float *b, Ahead ahead, bool add, float *c,
                                int64_t ld);
/// The same of lines of B, `ldb` apart, which lie in memory along k.
using MultiplyLines = void (*)(int64_t steps, const float *a, const float *b, int64_t ldb, Ahead ahead, bool add,
                               float *c, int64_t ldc, int64_t rows);
/// Lines at .. at+count-1 (rows of A, columns of B) at depths x .. x+depth-1, a panel after the other, in each one step
/// of k after the other; 0 where the last panel has no lines and the last step no number. `along`: a line lies in
/// memory one number after the other; else the numbers of one depth do.
using PackPanels = void (*)(const ConstMatrix &matrix, bool along, int64_t at, int64_t count, int64_t x, int64_t depth,
                            float *to);
/// `count` lines that lie along k, with `steps` steps each and no gaps.
using WidenLines = void (*)(const ConstMatrix &matrix, int64_t at, int64_t count, int64_t x, int64_t depth, float *to);

struct VectorWay {
  int64_t depthOfStep;              ///< numbers of k
  int64_t lanes;                    ///< of a vector
  int64_t panelRows, panelColumns;  ///< of panels of A and of B
  int64_t lineColumns;              ///< columns of a transposed B at once, beside panels of `panelColumns` rows of A
  int64_t mostLinesAhead;           ///< that `panels` can prefetch meanwhile at little cost
  const MultiplyPanels *panels;     ///< by rows, up to panelRows
  const MultiplyLines *lines[3];    ///< by vectors of rows, by columns up to lineColumns
  PackPanels packRows, packColumns; ///< in panels of panelRows, and of panelColumns
  WidenLines widenLines;

  int64_t stepsOf(int64_t depth) const { return (depth + depthOfStep - 1) / depthOfStep; }
};

namespace vectors {

/// Depth of a block of k: the length of a chain of sums, in all micro-kernels.
constexpr int64_t depthAtOnce = 768;
/// Rows of A that are packed at once, which lie in L2 or in L3, and the most that a panel of them may have beyond.
constexpr int64_t rowsAtOnce = 384, mostPanelRows = 32;
/// Columns of B that are packed at once, which lie in L2.
constexpr int64_t columnsAtOnce = 64;

extern const VectorWay avx2, avx512, avx512Pairs;

} // namespace vectors

/// Whether this machine has the vectors, and whether they multiply operands of these types.
bool machineHas(const VectorWay &way);
bool takesTypes(const VectorWay &way, DType a, DType b);

/// The best way of this machine for operands of these types, whether other products are faster or not; null where it
/// has none.
const VectorWay *bestWay(DType a, DType b);

} // namespace hpc::host
