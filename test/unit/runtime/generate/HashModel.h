// A model without weights: its logits are a hash of the tokens so far. make_golden.py has the same, bit for bit.
#pragma once

#include <cstdint>
#include <vector>

namespace hash_model {

/// The finalizer of SplitMix64, of the exclusive or.
inline uint64_t mix(uint64_t state, uint64_t value) {
  state ^= value + 0x9E3779B97F4A7C15;
  state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9;
  state = (state ^ state >> 27) * 0x94D049BB133111EB;
  return state ^ state >> 31;
}

/// Bell-shaped; exact, `scale` being a power of two.
inline std::vector<float> logitsAfter(const std::vector<int64_t> &tokens, int64_t vocabulary, double scale) {
  uint64_t state = 1;
  for (int64_t token : tokens)
    state = mix(state, uint64_t(token));
  std::vector<float> logits(vocabulary);
  for (int64_t token = 0; token < vocabulary; ++token) {
    const uint64_t word = mix(state, uint64_t(token));
    const int64_t sum = int64_t(word & 0xFFFF) + int64_t(word >> 16 & 0xFFFF) + int64_t(word >> 32 & 0xFFFF) + int64_t(word >> 48);
    logits[token] = float(sum - 131070) * float(scale);
  }
  return logits;
}

} // namespace hash_model
