// Operands of a matrix product as the tile registers (AMX) read them. A tile multiplies numbers of 8 bits, so an f32,
// which has 24, becomes three pieces that add up to it exactly, an f16 two; the sum of six products of pieces of f32 is
// as good as f32, the sum of all four of f16 is exact. A bf16 is a piece as it stands, and only moves.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hpc::host {

constexpr int64_t tileRows = 16;                  ///< of C and A; also columns of C and B
constexpr int64_t tileDepth = 32;                 ///< of A and B: a step
constexpr int64_t tileBytes = 1024;               ///< 16 rows of 64 bytes, whichever matrix it holds a part of
constexpr int64_t panelTiles = 2;                 ///< beside each other: a panel is 32 rows of A or 32 columns of B
constexpr int64_t panelWidth = panelTiles * tileRows;

/// The types that tiles multiply besides float. A product of two of BFloat16 has panels of its own; beside another type it
/// is packed as that is.
struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};
struct LoneBFloat16 {
  uint16_t bits;
};
struct Int8 {
  int8_t value;
};

/// How many pieces a number of type T is cut into.
template <typename T> constexpr int pieces = 3;
template <> inline constexpr int pieces<Float16> = 2;
template <> inline constexpr int pieces<BFloat16> = 1;
template <> inline constexpr int pieces<LoneBFloat16> = 1;
template <> inline constexpr int pieces<Int8> = 1; // seven bits and a sign

constexpr int64_t stepsOf(int64_t depth) { return (depth + tileDepth - 1) / tileDepth; }
constexpr int64_t tilesOf(int64_t width) { return (width + tileRows - 1) / tileRows; }
constexpr int64_t panelsOf(int64_t width) { return (width + panelWidth - 1) / panelWidth; }

enum class Side { Left, Right };

/// A part of an operand: `width` rows of A or columns of B, `depth` deep.
/// `alongDepth`: neighbours in memory are neighbours in depth; `ld` is the step across them.
template <typename T> struct PanelSource {
  const T *data = nullptr;
  int64_t ld = 1;
  bool alongDepth = false;
  int64_t width = 0, depth = 0;
};

/// Writes panels of tiles [panel][step of depth][piece][tile], a few rows of a tile a call: packing is done between
/// multiplications, which leave most of the core idle. Rows and depths beyond the source are 0. In a row of 16 pairs,
/// pair q of a step holds the depths q and q + 16: any order that is the same for A and B is right, and this one needs
/// no shuffles. A's tiles have a row for each of its rows, B's a row for each pair of depths.
template <typename T> class Packing {
public:
  void begin(const PanelSource<T> &source, Side side, std::byte *panels);
  /// Calls of step() that are left.
  int64_t left() const { return remaining; }
  void step();
  void finish() {
    while (remaining > 0)
      step();
  }

private:
  /// 16 vectors a step of memory apart; those that are not there, and lanes that are not, are 0.
  struct Block {
    const T *data;
    int64_t ld, vectors, lanes;
  };
  void beginTile();
  void transposeHalf(const Block &block, std::byte *rows) const;

  PanelSource<T> source;
  bool transposes = false;
  std::byte *panels = nullptr;
  int64_t remaining = 0, x = 0, at = 0; ///< x, at: of the tile that is packed, in depth and width
  int phase = 0;                        ///< of that tile: its two transposes, then four rows at a time
  Block low = {}, high = {};
  std::byte *tile = nullptr;
  int64_t pieceBytes = 0;
  alignas(64) std::byte transposed[2 * tileBytes];
};

/// For bf16, pair q of a step holds the depths 2 q and 2 q + 1: if neighbours in memory are neighbours in depth, a pair
/// is 32 bits there already. A step takes whole cache lines.
template <> class Packing<BFloat16> {
public:
  void begin(const PanelSource<BFloat16> &source, Side side, std::byte *panels);
  int64_t left() const { return remaining; }
  void step();
  void finish() {
    while (remaining > 0)
      step();
  }

private:
  int64_t partsOf(int64_t panel) const;
  void moveTile(std::byte *tile) const;
  void joinRows(std::byte *panel, bool hasSecond) const;

  PanelSource<BFloat16> source;
  bool transposes = false;
  std::byte *panels = nullptr;
  int64_t remaining = 0, x = 0, at = 0; ///< x, at: of the panel that is packed, in depth and width
  int64_t part = 0;                     ///< of that panel
};

} // namespace hpc::host
