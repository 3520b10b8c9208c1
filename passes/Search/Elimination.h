// The exact solver of layout problems: variables are eliminated one by one, each for all strategies of those that it shares an edge with
// (Dechter 1999, bucket elimination; Bertele and Brioschi 1972, nonserial dynamic programming).
#pragma once

#include "passes/Search/LayoutProblem.h"

namespace hpc::search {

/// A solution of the fewest seconds, with bound = seconds. With a capacity: Lagrange's multiplier of the memory gives bounds, and lists of
/// (seconds, memory) that no other entry beats close what they leave open (docs/search.md has the proof). Among equal ones the same is
/// taken on every run.
/// Errors: as `check`; (capacity) no possible solution, or none that the capacity holds, with the least bytes that one takes; (unsupported)
/// a graph so wide that the tables would have more than 2^24 entries.
Expected<LayoutProblem::Solution> solveByElimination(const LayoutProblem &problem);

/// The fewest seconds of a solution in which `variable` takes `strategy`; errors as above.
Expected<double> secondsWith(const LayoutProblem &problem, LayoutProblem::Variable variable, size_t strategy);

} // namespace hpc::search
