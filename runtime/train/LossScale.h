// The number that a loss is multiplied with so that its gradients fit 16-bit floats: as large as they allow, found by trying.
// A step whose gradients overflow changes nothing, so a scale that is too large costs that step alone.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hpc {

/// Powers of two, so that scaling rounds nothing.
struct LossScale {
  static constexpr double first = 65536;
  static constexpr int64_t growthInterval = 1000; ///< good steps in a row after which it doubles
  static constexpr int64_t patience = 2;          ///< it is halved from so many overflows on, counted since it last grew
  static constexpr double least = 1, most = 0x1p127;

  double scale = first;
  int64_t goodSteps = 0; ///< since the last overflow or growth
  int64_t patienceLeft = patience;

  /// After a step: whether its gradients overflowed.
  void update(bool overflowed) {
    if (overflowed) {
      goodSteps = 0;
      patienceLeft = std::max<int64_t>(patienceLeft - 1, 0);
      if (patienceLeft == 0)
        scale = std::max(scale / 2, least);
    } else if (++goodSteps == growthInterval) {
      goodSteps = 0;
      patienceLeft = patience;
      scale = std::min(scale * 2, most);
    }
  }
};

} // namespace hpc
