// A tile turned over in registers: 16 vectors of 16 numbers of 32 bits. For functions that are compiled for AVX-512.
#pragma once

#include <immintrin.h>

namespace hpc::host {

/// Interleaves by 1, then by 2 within 128 bits, then moves those by 4 and 8.
[[gnu::target("avx512f")]] inline void transpose(__m512 *rows) {
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

} // namespace hpc::host
