// Which blocks of a model each stage of a pipeline gets: the slowest stage takes as little as possible, and no stage more memory than it
// has. Plain C++ in the form of a scheduling problem.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace hpc::search {

class StageProblem {
public:
  struct Block {
    double seconds = 0;  ///< of a micro-batch, in all of its programs
    int64_t lasting = 0; ///< bytes, however many micro-batches are in flight
    int64_t kept = 0;    ///< bytes of each micro-batch in flight
  };
  struct Solution {
    std::vector<int64_t> counts; ///< blocks of each part; part k is chunk k / stages of stage k mod stages
    double seconds = 0;          ///< of the slowest stage for one micro-batch, in all of its parts
    double bound = 0;            ///< no solution takes fewer; equal to `seconds` where the solver has proved it
  };

  std::vector<Block> blocks; ///< in the order of the model; what is before or after all blocks belongs to the first or the last
  int64_t stages = 1, chunks = 1;
  std::vector<int64_t> inFlight; ///< by part: micro-batches whose values are kept at once
  int64_t temporaries = 0;       ///< bytes of a stage beside its blocks
  int64_t memory = std::numeric_limits<int64_t>::max(); ///< bytes that a stage may take

  int64_t parts() const { return stages * chunks; }
  /// Errors (internal): no stages or chunks, fewer blocks than parts, an entry of `inFlight` missing or below 1, seconds or bytes that are negative or no
  /// number.
  Status check() const;
  /// The memory of a stage of a solution.
  double secondsOf(const std::vector<int64_t> &counts, int64_t stage) const;
  int64_t memoryOf(const std::vector<int64_t> &counts, int64_t stage) const;
  double slowest(const std::vector<int64_t> &counts) const;
  /// Errors (internal): counts that are not of all parts or not of all blocks, a part without blocks, a stage that takes more than the memory, seconds
  /// that are not those of the slowest stage, a bound above them.
  Status verify(const Solution &solution) const;
};

/// With one chunk by dynamic programming over (stage, first block), exact; among equals the first stages take as few blocks as they can. With several by
/// branch and bound over parts, exact unless it has looked at `nodes` of them: then the bound is lower than the seconds. Errors: capacity, where no
/// split fits (or, with several chunks, none was found); those of check.
Expected<StageProblem::Solution> splitStages(const StageProblem &problem, int64_t nodes = 1 << 20);

} // namespace hpc::search
