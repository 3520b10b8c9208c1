// Operands of a matrix product as the tile registers (AMX) read them. A tile multiplies numbers of 8 bits, so an f32,
// which has 24, becomes three pieces that add up to it exactly; the sum of six products of pieces is then as good as
// f32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hpc::host {

constexpr int64_t tileRows = 16;                  ///< of C and A; also columns of C and B
constexpr int64_t tileDepth = 32;                 ///< of A and B: a step
constexpr int64_t tileBytes = 1024;               ///< 16 rows of 64 bytes, whichever matrix it holds a part of
constexpr int64_t panelTiles = 2;                 ///< beside each other: a panel is 32 rows of A or 32 columns of B
constexpr int64_t panelWidth = panelTiles * tileRows;

/// How many pieces a number of type T is cut into.
template <typename T> constexpr int pieces = sizeof(T) == 4 ? 3 : 1;

/// A part of an operand: `width` (at most 32) rows of A or columns of B, `depth` deep.
/// `alongDepth`: neighbours in memory are neighbours in depth; `ld` is the step across them.
template <typename T> struct PanelSource {
  const T *data = nullptr;
  int64_t ld = 1;
  bool alongDepth = false;
  int64_t width = 0, depth = 0;
};

/// Writes tiles [step of depth][piece][tile]; what the source lacks of whole tiles is 0. In a row of 16 pairs, pair q
/// of a step holds the depths q and q + 16: any order serves that is the same for A and B, and this one needs no
/// shuffles. A's tiles have a row for each of its rows, B's a row for each pair of depths. T: float, or uint16_t for
/// bf16.
template <typename T> void packLeft(const PanelSource<T> &source, std::byte *panel);
template <typename T> void packRight(const PanelSource<T> &source, std::byte *panel);

constexpr int64_t stepsOf(int64_t depth) { return (depth + tileDepth - 1) / tileDepth; }
constexpr int64_t tilesOf(int64_t width) { return (width + tileRows - 1) / tileRows; }

} // namespace hpc::host
