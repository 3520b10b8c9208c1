// Random numbers that are a function of where they are used: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). Generated code spells the same formula (passes/Kernels/Elements/Dropout.cpp), bit for bit.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace hpc::philox {

constexpr int rounds = 10;
constexpr uint32_t multipliers[2] = {0xD2511F53, 0xCD9E8D57};
constexpr uint32_t keySteps[2] = {0x9E3779B9, 0xBB67AE85}; ///< added to the key between rounds

using Counter = std::array<uint32_t, 4>;
using Key = std::array<uint32_t, 2>;

/// Four words for every counter, each as good as random.
constexpr Counter philox4x32(Counter c, Key key) {
  for (int round = 0; round < rounds; ++round) {
    const uint64_t a = uint64_t(multipliers[0]) * c[0], b = uint64_t(multipliers[1]) * c[2];
    c = {uint32_t(b >> 32) ^ c[1] ^ key[0], uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ key[1], uint32_t(a)};
    key = {key[0] + keySteps[0], key[1] + keySteps[1]};
  }
  return c;
}

/// The random numbers by which nn.dropout drops elements: the seed is the key; position, step and site are the counter. Steps of training
/// count from 1: in step 0, which is an evaluation, nothing is dropped and nothing is scaled.
struct DropoutStream {
  uint64_t seed = 0, step = 0; ///< of the step, its low 32 bits
  uint32_t site = 0;           ///< separates the dropouts of a model

  constexpr bool drops() const { return step != 0; }
  /// The number of the element at that row-major position of the whole tensor.
  constexpr uint32_t word(uint64_t position) const {
    return philox4x32({uint32_t(position), uint32_t(position >> 32), uint32_t(step), site},
                      {uint32_t(seed), uint32_t(seed >> 32)})[0];
  }
};

/// Elements with a word below this are dropped; 0 <= rate < 1, to the nearest 2^-32.
inline uint32_t dropoutThreshold(double rate) {
  const double words = std::nearbyint(rate * 0x1p32);
  return words >= 0x1p32 ? UINT32_MAX : uint32_t(words);
}
/// The factor of the kept elements.
inline double dropoutScale(double rate) { return 1 / (1 - rate); }

} // namespace hpc::philox
