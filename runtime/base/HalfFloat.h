// The two 16-bit floats as bits: f16 (IEEE binary16) and bf16 (the upper half of an f32). Widening is exact, narrowing
// rounds to nearest, ties to even; NaN stays NaN, too large numbers become infinite, subnormals are kept.
#pragma once

#include <cstdint>
#include <cstring>

namespace hpc {

inline uint32_t floatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float floatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline float halfToFloat(uint16_t half) {
  // An f32 with the same fields is the same number, except for a bias larger by 112 and the meaning of exponent 31.
  uint32_t magnitude = floatBits(floatOfBits(uint32_t(half & 0x7fff) << 13) * 0x1p112f);
  if ((half & 0x7c00) == 0x7c00)
    magnitude |= 0x7f800000;
  return floatOfBits(magnitude | uint32_t(half & 0x8000) << 16);
}

inline uint16_t floatToHalf(float value) {
  uint32_t bits = floatBits(value) & 0x7fffffff;
  uint16_t sign = uint16_t((floatBits(value) >> 16) & 0x8000);
  if (bits > 0x7f800000)
    return uint16_t(sign | 0x7e00 | (bits >> 13 & 0x1ff));
  if (bits >= floatBits(65520.0f)) // halfway from the largest f16 to the next power of two
    return uint16_t(sign | 0x7c00);
  if (bits < floatBits(0x1p-14f)) // a multiple of 2^-24, the unit in the last place of 1/2
    return uint16_t(sign | (floatBits(floatOfBits(bits) + 0.5f) - floatBits(0.5f)));
  return uint16_t(sign | ((bits - (112u << 23) + 0xfff + (bits >> 13 & 1)) >> 13));
}

inline float bfloatToFloat(uint16_t bfloat) { return floatOfBits(uint32_t(bfloat) << 16); }

inline uint16_t floatToBfloat(float value) {
  uint32_t bits = floatBits(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace hpc
