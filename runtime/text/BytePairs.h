// Byte-pair encoding (Sennrich et al. 2016): the two neighbours whose merge comes first in the list are joined, the leftmost
// first, until no merge applies.
#pragma once

#include "runtime/base/Status.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hpc::text {

class BytePairs {
public:
  /// Tokens by id, as raw bytes, "" where an id names none; merges in order, as ids of their two parts.
  /// `takesWholePieces`: a piece that is a token is that token, whatever merges say (`ignore_merges`).
  /// Errors (Model): a byte that is no token, a merge whose result is none.
  static Expected<BytePairs> create(std::vector<std::string> tokens, const std::vector<std::pair<int32_t, int32_t>> &merges,
                                    bool takesWholePieces);

  /// Memory of one thread: the tokens of short pieces that it saw last.
  class Cache;
  void encode(std::string_view piece, std::vector<int32_t> &ids, Cache &cache) const;
  const std::vector<std::string> &tokens() const { return tokensById; }

private:
  struct Merge {
    int32_t rank, result;
  };
  void merge(std::string_view piece, std::vector<int32_t> &ids) const;
  const Merge *find(int32_t left, int32_t right) const;

  std::vector<std::string> tokensById;
  std::array<int32_t, 256> ofByte = {};
  std::unordered_map<uint64_t, Merge> merges; ///< by left << 32 | right
  std::unordered_map<std::string_view, int32_t> whole; ///< into tokensById, whose strings do not move
};

class BytePairs::Cache {
public:
  Cache() : slots(size_t(1) << 15) {}

private:
  friend class BytePairs;
  struct Slot {
    uint8_t bytes = 0, count = 0; ///< bytes == 0: nothing is here
    char piece[22];
    int32_t ids[10];
  };
  std::vector<Slot> slots;
};

} // namespace hpc::text
