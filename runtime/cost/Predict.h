// What a step of a plan takes on a machine that need not be there: the plan itself is simulated, with all of its ranks, its
// schedule, posts and waits. Ranks that do the same at the same times are simulated once.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/cost/Machine.h"
#include "runtime/plan/Plan.h"

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

struct Prediction {
  double seconds = 0;             ///< of a step, until the last rank is done
  std::vector<RankSeconds> ranks; ///< by rank
  double bubble = 0;              ///< share of ranks * seconds that is idle
  /// From the end of the step back: what the last rank did last, what that waited for, and so on. The longest first; they add up to
  /// `seconds`.
  std::vector<PathPart> path;
  double flops = 0;         ///< of the products of all ranks, attention included
  double repeatedFlops = 0; ///< of these, computed again for gradients
  double bytesSent = 0;     ///< by all ranks
  /// Model flops utilisation: the share of ranks * seconds that the products take at the peak of their types, those apart that are
  /// computed again.
  double mfu = 0;
};

/// The ordinary step, without what is on request. The plan has passed its check; of one with entries, give the plan of one
/// (plan::planOf). Errors: a plan in which ranks wait for ever.
Expected<Prediction> predict(const plan::Plan &plan, const Machine &machine);

} // namespace hpc::cost
