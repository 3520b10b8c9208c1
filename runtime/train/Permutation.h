// The order of an epoch: a permutation that is computed, not stored, so that it takes no memory and any place of it is known at once.
// Source: a Feistel network (Luby, Rackoff, SIAM J. Comput. 17, 1988) over the next power of 4, and cycle walking down to the size
// (Black, Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002, section 3). Its round function is Philox.
#pragma once

#include "runtime/base/Philox.h"

namespace hpc {

class Permutation {
public:
  /// A permutation of [0, size), 1 <= size < 2^62. Seeds, streams and epochs that differ give permutations that have nothing to do with each other.
  Permutation(int64_t size, uint64_t seed, uint32_t stream, int64_t epoch)
      : size(uint64_t(size)), key{uint32_t(seed), uint32_t(seed >> 32)}, stream(stream), epoch(uint32_t(epoch)) {
    while (halfBits < 31 && (uint64_t(1) << (2 * halfBits)) < this->size)
      ++halfBits;
  }

  /// The element at a place of [0, size).
  int64_t operator()(int64_t place) const {
    uint64_t value = uint64_t(place);
    do
      value = encrypt(value);
    while (value >= size); // fewer than four turns on average
    return int64_t(value);
  }

private:
  static constexpr uint32_t rounds = 8;

  uint64_t encrypt(uint64_t value) const {
    const uint32_t mask = (uint32_t(1) << halfBits) - 1;
    uint32_t left = uint32_t(value >> halfBits), right = uint32_t(value) & mask;
    for (uint32_t round = 0; round < rounds; ++round) {
      const uint32_t next = left ^ (philox::philox4x32({right, round, stream, epoch}, key)[0] & mask);
      left = right;
      right = next;
    }
    return uint64_t(left) << halfBits | right;
  }

  uint64_t size;
  philox::Key key;
  uint32_t stream, epoch;
  int halfBits = 1;
};

} // namespace hpc
