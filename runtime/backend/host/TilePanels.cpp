// One tile at a time: 32 vectors of 16 numbers, two for each of its rows, transposed in registers where memory runs the
// other way.
#include "runtime/backend/host/TilePanels.h"

#include "runtime/backend/host/TileTranspose.h"

#include <algorithm>
#include <immintrin.h>

namespace hpc::host {

#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl"))), apply_to = function)

namespace {

constexpr int rowsAStep = 4; ///< of a tile: short enough to fit between two multiplications

__m512 read(const float *from, __mmask16 lanes) { return _mm512_maskz_loadu_ps(lanes, from); }
__m512 read(const Float16 *from, __mmask16 lanes) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, from)); }

__m512 read(const LoneBFloat16 *from, __mmask16 lanes) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from)), 16));
}
__m512 read(const Int8 *from, __mmask16 lanes) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(lanes, from)));
}

/// The first 8 bits of the numbers in `low` and `high`, side by side in 32.
__m512i pairOf(__m512 low, __m512 high, __m512i upper) {
  __m512i shifted = _mm512_srli_epi32(_mm512_castps_si512(low), 16);
  return _mm512_ternarylogic_epi32(shifted, _mm512_castps_si512(high), upper, 0xf8); // shifted | (high & upper)
}

/// The rest after the first 8 bits, exactly.
__m512 restOf(__m512 x, __m512i upper) {
  return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), upper)));
}

/// A row of a tile, and of the tiles of the lower pieces after it.
template <typename T> void packRow(__m512 low, __m512 high, std::byte *row, int64_t pieceBytes) {
  const __m512i upper = _mm512_set1_epi32(int(0xffff0000));
  for (int piece = 0; piece < pieces<T>; ++piece, row += pieceBytes) {
    _mm512_store_si512(row, pairOf(low, high, upper));
    low = restOf(low, upper);
    high = restOf(high, upper);
  }
}

} // namespace

template <typename T> void Packing<T>::begin(const PanelSource<T> &from, Side side, std::byte *to) {
  source = from;
  transposes = source.alongDepth == (side == Side::Right);
  panels = to;
  x = at = phase = 0;
  const int phases = tileRows / rowsAStep + (transposes ? 2 : 0);
  remaining = stepsOf(source.depth) * tilesOf(source.width) * phases;
}

template <typename T> void Packing<T>::beginTile() {
  const int64_t half = tileDepth / 2, panelStep = pieces<T> * panelTiles * tileBytes;
  const int64_t width = source.width - at, depth = source.depth - x;
  low = source.alongDepth ? Block{source.data + at * source.ld + x, source.ld, width, depth}
                          : Block{source.data + x * source.ld + at, source.ld, depth, width};
  high = low;
  high.data += source.alongDepth ? half : half * source.ld;
  (source.alongDepth ? high.lanes : high.vectors) -= half;
  // The last panel has one tile where no more are needed.
  const int64_t panel = at / panelWidth, tiles = tilesOf(std::min(panelWidth, source.width - panel * panelWidth));
  tile = panels + panel * stepsOf(source.depth) * panelStep + x / tileDepth * pieces<T> * tiles * tileBytes +
         at % panelWidth / tileRows * tileBytes;
  pieceBytes = tiles * tileBytes;
}

static __mmask16 maskOf(int64_t lanes) { return __mmask16((1u << std::clamp<int64_t>(lanes, 0, 16)) - 1); }

template <typename T> void Packing<T>::transposeHalf(const Block &block, std::byte *to) const {
  __m512 rows[16];
  const __mmask16 lanes = maskOf(block.lanes);
  if (block.vectors >= 16)
    for (int i = 0; i < 16; ++i)
      rows[i] = read(block.data + i * block.ld, lanes);
  else
    for (int i = 0; i < 16; ++i)
      rows[i] = i < block.vectors ? read(block.data + i * block.ld, lanes) : _mm512_setzero_ps();
  transpose(rows);
  for (int i = 0; i < 16; ++i)
    _mm512_store_ps(to + i * 64, rows[i]);
}

template <typename T> void Packing<T>::step() {
  --remaining;
  if (phase == 0)
    beginTile();
  if (transposes && phase < 2) {
    transposeHalf(phase == 0 ? low : high, transposed + phase * tileBytes);
    ++phase;
    return;
  }
  const int first = (transposes ? phase - 2 : phase) * rowsAStep;
  const __mmask16 lowLanes = maskOf(low.lanes), highLanes = maskOf(high.lanes);
  for (int row = first; row < first + rowsAStep; ++row) {
    auto vector = [&](const Block &block, __mmask16 lanes) {
      return row < block.vectors ? read(block.data + row * block.ld, lanes) : _mm512_setzero_ps();
    };
    __m512 lowRow = transposes ? _mm512_load_ps(transposed + row * 64) : vector(low, lowLanes);
    __m512 highRow = transposes ? _mm512_load_ps(transposed + tileBytes + row * 64) : vector(high, highLanes);
    packRow<T>(lowRow, highRow, tile + row * 64, pieceBytes);
  }
  ++phase;
  if (first + rowsAStep < tileRows)
    return;
  phase = 0;
  if ((at += tileRows) < source.width)
    return;
  at = 0;
  x += tileDepth;
}

template class Packing<float>;
template class Packing<Float16>;
template class Packing<LoneBFloat16>;
template class Packing<Int8>;

#pragma clang attribute pop

} // namespace hpc::host
