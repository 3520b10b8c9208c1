// The other solvers of layout problems: all choices in turn, and the integer program that CBC solves.
#pragma once

#include "passes/Search/LayoutProblem.h"

namespace hpc::search {

/// The fewest seconds, below a limit, of all choices that ties, pairs and the capacity allow; nullopt where there is none.
std::optional<LayoutProblem::Solution> solveByBruteForce(const LayoutProblem &problem, double below = impossible);

/// A 0/1 variable for each strategy and for each pair of an edge. Of a variable exactly one strategy; of an edge one pair, whose ends are the
/// strategies taken. nullopt where CBC finds it infeasible.
std::optional<double> solveByCbc(const LayoutProblem &problem);

} // namespace hpc::search
