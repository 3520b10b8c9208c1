// A panel is two tiles wide, so that 32 numbers that lie side by side, a cache line, are packed together.
#include "runtime/backend/host/TilePanels.h"

#include "runtime/backend/host/TileTranspose.h"

#include <algorithm>

namespace hpc::host {

#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl"))), apply_to = function)

namespace {

constexpr int64_t joinedAStep = 4; ///< pairs of vectors: short enough to fit between two multiplications

__mmask32 maskOf(int64_t lanes) { return __mmask32((uint64_t(1) << std::clamp<int64_t>(lanes, 0, 32)) - 1); }

__m512i read(const BFloat16 *from, __mmask32 lanes) { return _mm512_maskz_loadu_epi16(lanes, from); }

/// 32 pairs of a number of `even` and one of `odd`: the first 16, and the others.
void join(__m512i even, __m512i odd, __m512i &first, __m512i &second) {
  // Within 128 bits: pairs 0 to 3, 8 to 11, 16 to 19, 24 to 27, and those between them.
  const __m512i low = _mm512_unpacklo_epi16(even, odd), high = _mm512_unpackhi_epi16(even, odd);
  first = _mm512_permutex2var_epi64(low, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), high);
  second = _mm512_permutex2var_epi64(low, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), high);
}

void transposeTile(std::byte *tile) {
  __m512 rows[16];
  for (int i = 0; i < 16; ++i)
    rows[i] = _mm512_load_ps(tile + i * 64);
  transpose(rows);
  for (int i = 0; i < 16; ++i)
    _mm512_store_ps(tile + i * 64, rows[i]);
}

} // namespace

void Packing<BFloat16>::begin(const PanelSource<BFloat16> &from, Side side, std::byte *to) {
  source = from;
  transposes = source.alongDepth == (side == Side::Right);
  panels = to;
  x = at = part = 0;
  remaining = 0;
  for (int64_t panel = 0; panel < source.width; panel += panelWidth)
    remaining += partsOf(panel);
  remaining *= stepsOf(source.depth);
}

/// Calls of step() for a panel and a step of depth: along depth a tile each; else some pairs of vectors each, and then
/// the tiles that are transposed.
int64_t Packing<BFloat16>::partsOf(int64_t panel) const {
  const int64_t tiles = tilesOf(std::min(panelWidth, source.width - panel));
  return source.alongDepth ? tiles : tileRows / joinedAStep + (transposes ? tiles : 0);
}

/// A tile of vectors along depth, which are pairs as they lie.
void Packing<BFloat16>::moveTile(std::byte *tile) const {
  const int64_t first = at + part * tileRows, vectors = source.width - first;
  const BFloat16 *from = source.data + first * source.ld + x;
  const __mmask32 lanes = maskOf(source.depth - x);
  __m512 rows[16];
  for (int i = 0; i < 16; ++i)
    rows[i] = i < vectors ? _mm512_castsi512_ps(read(from + i * source.ld, lanes)) : _mm512_setzero_ps();
  if (transposes)
    transpose(rows);
  for (int i = 0; i < 16; ++i)
    _mm512_store_ps(tile + i * 64, rows[i]);
}

/// Rows of both tiles of a panel, from vectors across depth.
void Packing<BFloat16>::joinRows(std::byte *panel, bool hasSecond) const {
  const __mmask32 lanes = maskOf(source.width - at);
  for (int64_t pair = part * joinedAStep; pair < (part + 1) * joinedAStep; ++pair) {
    const int64_t depth = x + 2 * pair;
    const BFloat16 *from = source.data + depth * source.ld + at;
    const __m512i even = depth < source.depth ? read(from, lanes) : _mm512_setzero_si512(),
                  odd = depth + 1 < source.depth ? read(from + source.ld, lanes) : _mm512_setzero_si512();
    __m512i first, second;
    join(even, odd, first, second);
    _mm512_store_si512(panel + pair * 64, first);
    if (hasSecond)
      _mm512_store_si512(panel + tileBytes + pair * 64, second);
  }
}

void Packing<BFloat16>::step() {
  --remaining;
  const int64_t tiles = tilesOf(std::min(panelWidth, source.width - at));
  // The last panel has one tile where no more are needed.
  std::byte *panel =
      panels + (at / panelWidth * stepsOf(source.depth) * panelTiles + x / tileDepth * tiles) * tileBytes;
  const int64_t joins = tileRows / joinedAStep;
  if (source.alongDepth)
    moveTile(panel + part * tileBytes);
  else if (part < joins)
    joinRows(panel, tiles > 1);
  else
    transposeTile(panel + (part - joins) * tileBytes);
  if (++part < partsOf(at))
    return;
  part = 0;
  if ((at += panelWidth) < source.width)
    return;
  at = 0;
  x += tileDepth;
}

#pragma clang attribute pop

} // namespace hpc::host
