// Which of several weighted sources gives the next sample: the one that is furthest behind its share, as Megatron-LM mixes data
// (build_blending_indices in megatron/core/datasets/helpers.cpp), but exactly and for any sample at once.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hpc {

class Blend {
public:
  /// Weights as decimals: "0.7", "0.3". With whole numbers a[i] in their ratio and S = sum of a[i], the choice repeats after S samples, in
  /// which each source has given exactly a[i] of them; S may be 2^20 at most, which is what the table takes. Errors (Usage): no
  /// number above 0, too many digits.
  static Expected<Blend> create(const std::vector<std::string> &weights);

  struct Sample {
    size_t source = 0;
    int64_t index = 0; ///< how many samples before it came from that source
  };
  /// Sample `number`, from 0. At each, the source with the largest a[i] * number - S * (its samples so far) is taken, of equal ones the
  /// first; the very first sample comes from the heaviest source.
  Sample at(int64_t number) const;

private:
  struct Place {
    uint32_t source, index;
  };
  std::vector<int64_t> shares;       ///< a
  std::vector<Place> first, further; ///< the choices of the first S samples, and of each S samples after them
};

} // namespace hpc
