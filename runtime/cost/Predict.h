// The time of a step of a plan on a machine that need not be there: the plan itself is simulated, with all of its ranks, its
// schedule, posts and waits. Ranks that do the same at the same times are simulated once.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/cost/Machine.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/InstructionRun.h"
#include "runtime/plan/PlanExplain.h"

#include <functional>
#include <string>
#include <vector>

namespace hpc::cost {

/// Seconds of one rank in a step. Computing, exposed and idle add up to the step.
struct RankSeconds {
  double computing = 0;
  double communicating = 0; ///< its collectives and messages, sent and received, while they are under way
  double exposed = 0;       ///< the rank stands at one that is under way
  double idle = 0;          ///< the rest: it waits for others
  double hidden() const { return communicating > exposed ? communicating - exposed : 0; }
};

/// A class of the instructions on the critical path: "products", "kernels", "all_reduce over tp", "messages", ...
struct PathPart {
  std::string what;
  double seconds = 0;
};

/// A class of transfers: means over all ranks.
struct TransferTime {
  std::string what;
  double seconds = 0; ///< under way
  double exposed = 0; ///< of these, while the rank stands at it; it computes beside the rest
};

struct Prediction {
  double seconds = 0;             ///< of a step, until the last rank is done
  std::vector<RankSeconds> ranks; ///< by rank
  double bubble = 0;              ///< share of ranks * seconds that is idle
  /// From the end of the step back: what the last rank did last, what that waited for, and so on. The longest first; they add up to
  /// `seconds`.
  std::vector<PathPart> path;
  std::vector<TransferTime> transfers; ///< the longest first
  double flops = 0;                    ///< of the products of all ranks, attention included
  double repeatedFlops = 0;            ///< of these, computed again for gradients
  double bytesSent = 0;                ///< by all ranks, collectives as rings
  /// Model flops utilisation: the share of ranks * seconds that the products take at the peak of their types, those apart that are
  /// computed again.
  double mfu = 0;
  int64_t simulatedRanks = 0; ///< the others do the same as one of these

  /// Share of ranks * seconds that ranks stand at transfers.
  double exposed() const;
};

/// "computation", "communication" or "pipeline": the largest share of a step of which ranks stand at transfers and are idle for such shares.
std::string bindingOf(double exposed, double bubble);
/// The figures of --explain.
plan::PredictedStep figuresOf(const plan::Plan &plan, const Machine &machine, const Prediction &prediction);

enum class RunKind : uint8_t {
  Computes,
  Stands,    ///< the rank waits at the instruction
  Transfers, ///< the transfer that the instruction starts is under way
};

/// A run of an instruction by a simulated rank, when it ends.
struct ObservedRun {
  int64_t rank = 0;
  int32_t step = 0, instruction = 0; ///< index into the stage's schedule and into the program's instructions
  double start = 0, end = 0;         ///< seconds
  RunKind kind = RunKind::Computes;
};
using Observer = std::function<void(const ObservedRun &)>;

struct PredictOptions {
  bool everyRank = false; ///< simulates each rank, also where several do the same; the result is the same
  Observer observe = {};
};

/// The ordinary step, without what is on request. The plan has passed its check; of one with entries, give the plan of one
/// (plan::planOf). Errors: a plan in which ranks wait for ever.
Expected<Prediction> predict(const plan::Plan &plan, const Machine &machine, const PredictOptions &options = {});
/// The same with durations of the caller's; the machine shares processors and links among them.
Expected<Prediction> predict(const plan::Plan &plan, const Machine &machine, const plan::Durations &durations, const PredictOptions &options = {});

} // namespace hpc::cost
