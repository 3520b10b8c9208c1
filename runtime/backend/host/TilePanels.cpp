// One tile at a time: 32 vectors of 16 numbers, two for each of its rows, transposed in registers where memory runs the
// other way.
#include "runtime/backend/host/TilePanels.h"

#include <algorithm>
#include <immintrin.h>

namespace hpc::host {

#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)

namespace {

__m512 read(const float *from, __mmask16 lanes) { return _mm512_maskz_loadu_ps(lanes, from); }
__m512 read(const uint16_t *from, __mmask16 lanes) {
  alignas(32) uint16_t some[16] = {};
  if (lanes != 0xffff) {
    for (int lane = 0; lanes >> lane; ++lane)
      some[lane] = from[lane];
    from = some;
  }
  __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(all), 16));
}

/// 16 vectors a step of memory apart; those that are not there, and lanes that are not, are 0.
template <typename T> struct Block {
  const T *data;
  int64_t ld, vectors, lanes;

  bool isWhole() const { return vectors >= 16 && lanes >= 16; }
  __m512 whole(int64_t i) const { return read(data + i * ld, 0xffff); }
  __m512 part(int64_t i) const {
    const __mmask16 mask = __mmask16((1u << std::clamp<int64_t>(lanes, 0, 16)) - 1);
    return i < vectors ? read(data + i * ld, mask) : _mm512_setzero_ps();
  }
};

/// Interleaves by 1, then by 2 within 128 bits, then moves those by 4 and 8.
void transpose(__m512 *rows) {
  __m512 a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    a[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int half = 0; half < 2; ++half) {
      __m512d low = _mm512_castps_pd(a[i + half]), high = _mm512_castps_pd(a[i + half + 2]);
      b[i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
      b[i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
    }
  for (int i = 0; i < 4; ++i) {
    a[i] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
    a[i + 4] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xdd);
    a[i + 8] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
    a[i + 12] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0x88);
    rows[i + 4] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0x88);
    rows[i + 8] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0xdd);
    rows[i + 12] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0xdd);
  }
}

/// The first 8 bits of the numbers in `low` and `high`, side by side in 32.
__m512i pairOf(__m512 low, __m512 high, __m512i upper) {
  __m512i shifted = _mm512_srli_epi32(_mm512_castps_si512(low), 16);
  return _mm512_ternarylogic_epi32(shifted, _mm512_castps_si512(high), upper, 0xf8); // shifted | (high & upper)
}

/// What the first 8 bits leave, exactly.
__m512 restOf(__m512 x, __m512i upper) {
  return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), upper)));
}

/// A row of a tile, and of the tiles of the lower pieces behind it.
template <typename T> void packRow(__m512 low, __m512 high, std::byte *row, int64_t pieceBytes) {
  const __m512i upper = _mm512_set1_epi32(int(0xffff0000));
  for (int piece = 0; piece < pieces<T>; ++piece, row += pieceBytes) {
    _mm512_store_si512(row, pairOf(low, high, upper));
    low = restOf(low, upper);
    high = restOf(high, upper);
  }
}

template <typename T> void packTile(const Block<T> &low, const Block<T> &high, bool transposes, std::byte *tile,
                                    int64_t pieceBytes) {
  if (!transposes && low.isWhole() && high.isWhole()) {
    for (int row = 0; row < 16; ++row)
      packRow<T>(low.whole(row), high.whole(row), tile + row * 64, pieceBytes);
    return;
  }
  __m512 rows[2][16];
  for (int row = 0; row < 16; ++row) {
    rows[0][row] = low.part(row);
    rows[1][row] = high.part(row);
  }
  if (transposes) {
    transpose(rows[0]);
    transpose(rows[1]);
  }
  for (int row = 0; row < 16; ++row)
    packRow<T>(rows[0][row], rows[1][row], tile + row * 64, pieceBytes);
}

template <typename T> void pack(const PanelSource<T> &source, bool transposes, std::byte *panels) {
  const int64_t half = tileDepth / 2, panelStep = pieces<T> * panelTiles * tileBytes;
  for (int64_t x = 0; x < source.depth; x += tileDepth)
    for (int64_t at = 0; at < source.width; at += tileRows) {
      const int64_t width = source.width - at, depth = source.depth - x;
      Block<T> low = source.alongDepth ? Block<T>{source.data + at * source.ld + x, source.ld, width, depth}
                                       : Block<T>{source.data + x * source.ld + at, source.ld, depth, width};
      Block<T> high = low;
      high.data += source.alongDepth ? half : half * source.ld;
      (source.alongDepth ? high.lanes : high.vectors) -= half;
      // The last panel has one tile where no more are needed.
      const int64_t panel = at / panelWidth, tiles = tilesOf(std::min(panelWidth, source.width - panel * panelWidth));
      std::byte *step = panels + panel * stepsOf(source.depth) * panelStep +
                        x / tileDepth * pieces<T> * tiles * tileBytes;
      packTile(low, high, transposes, step + at % panelWidth / tileRows * tileBytes, tiles * tileBytes);
    }
}

} // namespace

template <typename T> void packLeft(const PanelSource<T> &source, std::byte *panel) {
  pack(source, !source.alongDepth, panel);
}
template <typename T> void packRight(const PanelSource<T> &source, std::byte *panel) {
  pack(source, source.alongDepth, panel);
}

template void packLeft(const PanelSource<float> &, std::byte *);
template void packLeft(const PanelSource<uint16_t> &, std::byte *);
template void packRight(const PanelSource<float> &, std::byte *);
template void packRight(const PanelSource<uint16_t> &, std::byte *);

#pragma clang attribute pop

} // namespace hpc::host
