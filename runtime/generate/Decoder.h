// A decoder with caches of keys and values, as the loop that generates sees it. All rows of its batch stand at one position, which each
// call gives: it sees the positions before it, whoever wrote them, and overwrites those from it on.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <vector>

namespace hpc::generate {

struct DecoderShape {
  int64_t batch = 1;      ///< B: rows, each of one sequence
  int64_t chunk = 1;      ///< C: positions of a prefill; divides maxLength
  int64_t maxLength = 1;  ///< L: positions that the caches hold
  int64_t vocabulary = 1; ///< V
};

/// After a failure the caches hold nothing of use.
class Decoder {
public:
  virtual ~Decoder() = default;

  /// The same for as long as it lives.
  virtual DecoderShape shape() const = 0;

  /// Ids [B, C], row by row, at `position` .. `position` + C - 1, where `position` is a multiple of C. Logits [B, V], of the id at
  /// `position` + `row`. The ids after `row` may be any of the vocabulary: later calls overwrite what they leave in the caches.
  virtual Status prefill(const std::vector<int64_t> &ids, int64_t position, int64_t row, std::vector<float> &logits) = 0;

  /// Ids [B] at `position`, which is less than L. Logits [B, V].
  virtual Status decode(const std::vector<int64_t> &ids, int64_t position, std::vector<float> &logits) = 0;

  /// Row r of the caches becomes what row `rows[r]` was. Several may become one.
  virtual Status reorder(const std::vector<int64_t> &rows) = 0;
};

} // namespace hpc::generate
