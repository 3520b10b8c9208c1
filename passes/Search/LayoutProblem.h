// Which strategy each op takes: variables with a few strategies each, seconds of each strategy and of each pair along an edge. Plain
// C++ in the form of a scheduling problem: properties, `check` before a solver runs, `verify` of what it found.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace hpc::search {

/// Seconds of a pair that no program may have.
constexpr double impossible = std::numeric_limits<double>::infinity();

class LayoutProblem {
public:
  using Variable = size_t;

  struct Strategy {
    std::string name;   ///< for people: the op's rule with its factors cut
    double seconds = 0; ///< `impossible`: no solution takes it
    int64_t memory = 0; ///< bytes
  };
  /// Seconds of the pair (strategy of `a`, strategy of `b`), in rows by `a`.
  struct Edge {
    Variable a = 0, b = 0;
    std::vector<double> seconds;
  };
  struct Solution {
    std::vector<size_t> chosen; ///< by variable
    double seconds = 0;
    int64_t memory = 0;
    double bound = 0; ///< no solution takes fewer seconds
  };

  Variable addVariable(std::string name, std::vector<Strategy> strategies);
  /// Two variables may have several edges; their seconds add up.
  void addEdge(Variable a, Variable b, std::vector<double> seconds);
  /// Both take the strategy of the same number, as equal ops of equal blocks do.
  void tie(Variable a, Variable b);
  /// The most bytes that all strategies together may take.
  void setCapacity(int64_t bytes) { limit = bytes; }

  size_t size() const { return variables.size(); }
  const std::string &name(Variable variable) const { return variables[variable].name; }
  const std::vector<Strategy> &strategies(Variable variable) const { return variables[variable].strategies; }
  const std::vector<Edge> &edges() const { return allEdges; }
  std::optional<int64_t> capacity() const { return limit; }
  /// The first of the variables that a variable is tied to, itself where there is none.
  Variable first(Variable variable) const;

  /// Errors (internal): a variable without strategies, tied variables with unequal numbers of them, an edge whose table has another
  /// size or whose ends are one variable, seconds that are negative or no number, negative memory.
  Status check() const;
  double secondsOf(const std::vector<size_t> &chosen) const;
  int64_t memoryOf(const std::vector<size_t> &chosen) const;
  /// Errors (internal): a strategy that is not there or is impossible, tied variables that differ, seconds or memory that are not those of
  /// `chosen`, a bound above the seconds, more memory than the capacity.
  Status verify(const Solution &solution) const;

  /// The same problem without ties: one variable for each class of tied ones, with the sum of their seconds and memory. An edge inside
  /// of a class becomes part of its strategies' seconds.
  struct Condensed;
  Condensed condensed() const;

private:
  struct Data {
    std::string name;
    std::vector<Strategy> strategies;
    Variable tiedTo; ///< itself: the first of its class
  };
  std::vector<Data> variables;
  std::vector<Edge> allEdges;
  std::optional<int64_t> limit;
};

struct LayoutProblem::Condensed {
  LayoutProblem problem;
  std::vector<Variable> of; ///< by variable of the problem itself
};

} // namespace hpc::search
