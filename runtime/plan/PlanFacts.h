// What is known about a plan before it runs: memory per rank, traffic, the pipeline's bubble. All of it follows from
// the plan alone; nothing is measured.
#pragma once

#include "runtime/plan/Plan.h"

namespace hpc::plan {

/// Bytes of one rank of a stage (the ranks of a stage have the same arenas).
struct MemoryFacts {
  int64_t weight = 0;                                                   ///< the session arena but for the states
  int64_t state = 0;                                                    ///< Session buffers that no stored tensor fills
  int64_t step = 0;                                                     ///< Step buffers
  int64_t slot = 0;                                                     ///< all copies of all MicroBatch buffers
  int64_t temp = 0;                                                     ///< what else the work arena has
  int64_t host = 0;                                                     ///< beside the device
  int64_t total() const { return weight + state + step + slot + temp; } ///< of the device
};

/// One Collective or Send instruction over a whole step.
struct TrafficFacts {
  int64_t stage = 0, program = 0, instruction = 0;
  int64_t bytes =
      0; ///< payload of one rank and one run: the full array of a collective (before a scatter, after a gather)
  int64_t runs = 0;   ///< times that the stage runs it in a step
  int64_t groups = 0; ///< a collective's groups in the stage; a send's coordinates that have a peer
  bool isBesideComputation = false; ///< of a collective: products or kernels come between its post and its wait
  int64_t totalBytes() const { return bytes * runs * groups; }
};

/// What a chunk of a stage keeps of its forward program for its gradients, and computes again for them, at one rank.
struct KeptFacts {
  int64_t stage = 0, chunk = 0;
  int64_t values = 0, bytes = 0; ///< buffers that outlive no step, written by Part::Forward and read by gradients; all slots
  int64_t instructions = 0;      ///< of Part::Repeated, in one run of the programs
  int64_t productFlops = 0;      ///< of those, in a step, the largest over coordinates
};

/// A run of a program that computes, in the simulation's clock, in which each of them takes one unit.
struct Turn {
  int64_t start = 0;
  int32_t step = 0; ///< index into Stage::schedule
};

struct Timeline {
  std::vector<std::vector<Turn>> stages; ///< at coordinate 0, in order
  int64_t length = 0;                    ///< the last end
  /// Share of (stages * length) in which a stage idles.
  double bubble() const;
};

struct PlanFacts {
  std::vector<MemoryFacts> memory; ///< by stage
  std::vector<TrafficFacts> collectives, transfers;
  std::vector<int64_t> productFlops; ///< by stage: of one rank in one step, gemms and kernels, the largest over coordinates
  std::vector<int64_t> gemmFlops;    ///< of gemms alone
  std::vector<KeptFacts> kept;       ///< by stage and chunk; none of a plan that computes no gradients
  Timeline timeline;
  std::vector<PlanFacts> entries = {}; ///< of a plan with entries: each of them, programs by the numbers that planOf gives them
};

/// Bytes of a collective's full array at one rank: before a scatter, after a gather.
int64_t payloadBytes(const Plan &plan, const Collective &collective);

/// The unit in which the speed of a step is counted.
struct StepItems {
  std::string name = "samples"; ///< "tokens" where an input of ids is [rows, tokens]
  int64_t count = 0;            ///< of a step; 0 where no input has a shape
};
StepItems itemsOf(const Plan &plan);

/// Everything but the timeline. Needs a plan that passed checkStructure. Of a plan with entries those of the first.
PlanFacts staticFacts(const Plan &plan);

} // namespace hpc::plan
