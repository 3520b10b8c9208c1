// Where the buffers of one program lie.
#pragma once

#include "runtime/plan/Liveness.h"

#include <vector>

namespace hpc {

/// Buffers begin at multiples of 64 bytes.
constexpr int64_t alignUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Gives the buffers of `ranges` offsets from `start` on, so that no two that live at once overlap, and returns the
/// end. Each in turn gets the lowest place that is free for all of its life: the largest buffers first, and where more
/// is taken than lives at once, once more in order of the fullest instruction of each one's life (the greedy orders
/// "by size" and "by breadth" of Pisarchyk and Lee, 2020), then up to four times with the buffer that reaches the end put
/// first. The placement that ends lowest is kept. The same program always gets the same offsets.
int64_t placeTemporaries(plan::Stage &stage, const std::vector<plan::LiveRange> &ranges, int64_t start);

} // namespace hpc
