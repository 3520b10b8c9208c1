// Measures what a machine computes, moves and sends in a second, as ranks of a plan would find it: all ranks at once, each on its own thread,
// through the backend that runs plans.
#pragma once

#include "runtime/core/Backend.h"
#include "runtime/cost/Machine.h"

namespace hpc {

/// The ranks that measure: `processes` of `ranksOfEach`.
struct MeasuredRanks {
  int64_t processes = 1, ranksOfEach = 1, process = 0;
  int64_t count() const { return processes * ranksOfEach; }
  RankRange own() const { return {process * ranksOfEach, ranksOfEach}; }
};

struct MeasureOptions {
  bool isHost = true; ///< seconds of computation are those of the thread's processor, which other work on the machine does not add to
  bool isBrief = false; ///< fewer sizes and rounds: a test
};

struct Measurement {
  cost::Machine machine; ///< all but name, memory and processors
  /// Share of the time of computing ranks in which others had their processors.
  double taken = 0;
};

/// Every process calls it; each gets the means over all ranks. At most a minute. A rank that is alone has a link with the speed of its memory.
Expected<Measurement> measure(Backend &backend, const MeasuredRanks &ranks, const MeasureOptions &options);

/// Seconds that an instruction takes on the host however little it does.
Expected<double> measureLaunch();

/// Seconds that a rank of the host takes for a collective of nothing where twice as many ranks as cores sleep and wake at it.
Expected<double> measureWake(int64_t cores);

} // namespace hpc
