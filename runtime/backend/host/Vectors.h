// Vectors of f32 for code that is written once, without intrinsics, and compiled for each kind of vectors: numbers are
// widened when they are read.
#pragma once

#include <cstdint>
#include <cstring>

#pragma clang diagnostic ignored "-Wpsabi" // vectors go through inline functions alone

#define HPC_INLINE [[gnu::always_inline]] inline
/// Before the innermost loop of a product: elsewhere it begins by chance, which costs up to a tenth of its speed.
#define HPC_ALIGNED [[clang::code_align(64)]]

namespace hpc::host {

struct BFloat {
  uint16_t bits;
};

/// `lanes` numbers of f32, and the types that are widened to them. A Float made of one number has it in all lanes.
template <int lanes> struct Vectors {
  typedef float Float __attribute__((ext_vector_type(lanes)));
  typedef uint32_t Word __attribute__((ext_vector_type(lanes)));
  typedef uint16_t Short __attribute__((ext_vector_type(lanes)));
  typedef _Float16 Half __attribute__((ext_vector_type(lanes)));
  typedef int8_t Byte __attribute__((ext_vector_type(lanes)));

  template <typename V> HPC_INLINE static void read(const void *from, V &vector) {
    std::memcpy(&vector, from, sizeof(V));
  }
  HPC_INLINE static void load(const float *from, Float &to) { read(from, to); }
  HPC_INLINE static void load(const _Float16 *from, Float &to) {
    Half half;
    read(from, half);
    to = __builtin_convertvector(half, Float);
  }
  HPC_INLINE static void load(const int8_t *from, Float &to) {
    Byte byte;
    read(from, byte);
    to = __builtin_convertvector(byte, Float);
  }
  HPC_INLINE static void load(const BFloat *from, Float &to) {
    Short bits;
    read(from, bits);
    const Word wide = __builtin_convertvector(bits, Word) << 16;
    read(&wide, to);
  }

  /// Rounds to nearest even.
  HPC_INLINE static void store(const Float &from, _Float16 *to) {
    const Half half = __builtin_convertvector(from, Half);
    std::memcpy(to, &half, sizeof(half));
  }
  HPC_INLINE static void store(const Float &from, BFloat *to) {
    Word bits;
    read(&from, bits);
    const Word even = bits + 0x7fff + (bits >> 16 & 1), quiet = bits | 0x400000;
    const Short narrow = __builtin_convertvector((from == from ? even : quiet) >> 16, Short);
    std::memcpy(to, &narrow, sizeof(narrow));
  }
};

HPC_INLINE float widen(float x) { return x; }
HPC_INLINE float widen(_Float16 x) { return float(x); }
HPC_INLINE float widen(int8_t x) { return float(x); }
HPC_INLINE float widen(BFloat x) {
  const uint32_t bits = uint32_t(x.bits) << 16;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}

} // namespace hpc::host
