// The problem keeps what it is given; all sums are formed in the order of variables and edges, so that equal input gives equal numbers.
#include "passes/Search/LayoutProblem.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace hpc::search {

LayoutProblem::Variable LayoutProblem::addVariable(std::string name, std::vector<Strategy> strategies) {
  variables.push_back({std::move(name), std::move(strategies), variables.size()});
  return variables.size() - 1;
}

void LayoutProblem::addEdge(Variable a, Variable b, std::vector<double> seconds) {
  allEdges.push_back({a, b, std::move(seconds)});
}

LayoutProblem::Variable LayoutProblem::first(Variable variable) const {
  while (variables[variable].tiedTo != variable)
    variable = variables[variable].tiedTo;
  return variable;
}

void LayoutProblem::tie(Variable a, Variable b) {
  a = first(a);
  b = first(b);
  variables[std::max(a, b)].tiedTo = std::min(a, b);
}

static Status wrong(const std::string &name, const std::string &why) {
  return Status::error(ErrorKind::Internal, "layout problem: '" + name + "': " + why);
}

Status LayoutProblem::check() const {
  for (const Data &data : variables) {
    if (data.strategies.empty())
      return wrong(data.name, "has no strategy");
    const Data &tied = variables[first(size_t(&data - variables.data()))];
    if (tied.strategies.size() != data.strategies.size())
      return wrong(data.name, "has " + std::to_string(data.strategies.size()) + " strategies and is tied to '" + tied.name + "' with " +
                                  std::to_string(tied.strategies.size()));
    for (const Strategy &strategy : data.strategies)
      if (!(strategy.seconds >= 0) || strategy.memory < 0)
        return wrong(data.name, "strategy '" + strategy.name + "' takes " + std::to_string(strategy.seconds) + " s and " +
                                    std::to_string(strategy.memory) + " bytes");
  }
  for (const Edge &edge : allEdges) {
    if (edge.a >= size() || edge.b >= size() || edge.a == edge.b)
      return wrong("edge", std::to_string(edge.a) + " to " + std::to_string(edge.b) + " joins no two variables");
    if (edge.seconds.size() != strategies(edge.a).size() * strategies(edge.b).size())
      return wrong(name(edge.a), "its edge to '" + name(edge.b) + "' has " + std::to_string(edge.seconds.size()) + " pairs");
    if (std::any_of(edge.seconds.begin(), edge.seconds.end(), [](double seconds) { return !(seconds >= 0); }))
      return wrong(name(edge.a), "its edge to '" + name(edge.b) + "' has a pair with negative seconds");
  }
  return Status::success();
}

double LayoutProblem::secondsOf(const std::vector<size_t> &chosen) const {
  double sum = 0;
  for (size_t variable = 0; variable < size(); ++variable)
    sum += strategies(variable)[chosen[variable]].seconds;
  for (const Edge &edge : allEdges)
    sum += edge.seconds[chosen[edge.a] * strategies(edge.b).size() + chosen[edge.b]];
  return sum;
}

int64_t LayoutProblem::memoryOf(const std::vector<size_t> &chosen) const {
  int64_t sum = 0;
  for (size_t variable = 0; variable < size(); ++variable)
    sum += strategies(variable)[chosen[variable]].memory;
  return sum;
}

Status LayoutProblem::verify(const Solution &solution) const {
  if (solution.chosen.size() != size())
    return wrong("solution", "it chooses for " + std::to_string(solution.chosen.size()) + " of " + std::to_string(size()) + " variables");
  for (size_t variable = 0; variable < size(); ++variable) {
    if (solution.chosen[variable] >= strategies(variable).size())
      return wrong(name(variable), "has no strategy " + std::to_string(solution.chosen[variable]));
    if (solution.chosen[variable] != solution.chosen[first(variable)])
      return wrong(name(variable), "differs from '" + name(first(variable)) + "', to which it is tied");
  }
  double seconds = secondsOf(solution.chosen), slack = 1e-9 * std::max(1.0, std::abs(seconds));
  if (!std::isfinite(seconds))
    return wrong("solution", "it takes an impossible pair");
  if (std::abs(seconds - solution.seconds) > slack || solution.bound > seconds + slack)
    return wrong("solution", "it takes " + std::to_string(seconds) + " s, not " + std::to_string(solution.seconds) + " with bound " +
                                 std::to_string(solution.bound));
  int64_t memory = memoryOf(solution.chosen);
  if (memory != solution.memory || memory > limit.value_or(memory))
    return wrong("solution", "it takes " + std::to_string(memory) + " bytes, not " + std::to_string(solution.memory) + ", of " +
                                 std::to_string(limit.value_or(memory)));
  return Status::success();
}

LayoutProblem::Condensed LayoutProblem::condensed() const {
  Condensed result;
  result.problem.limit = limit;
  result.of.resize(size());
  for (size_t variable = 0; variable < size(); ++variable) {
    if (size_t known = first(variable); known != variable) {
      result.of[variable] = result.of[known];
      std::vector<Strategy> &sums = result.problem.variables[result.of[known]].strategies;
      for (size_t i = 0; i < sums.size(); ++i) {
        sums[i].seconds += strategies(variable)[i].seconds;
        sums[i].memory += strategies(variable)[i].memory;
      }
    } else {
      result.of[variable] = result.problem.addVariable(name(variable), strategies(variable));
    }
  }
  std::map<std::pair<size_t, size_t>, size_t> known;
  for (const Edge &edge : allEdges) {
    size_t a = result.of[edge.a], b = result.of[edge.b], rows = strategies(edge.a).size(), columns = strategies(edge.b).size();
    if (a == b) {
      for (size_t i = 0; i < rows; ++i)
        result.problem.variables[a].strategies[i].seconds += edge.seconds[i * columns + i];
      continue;
    }
    auto [entry, isNew] = known.try_emplace(std::minmax(a, b), result.problem.allEdges.size());
    bool isTurned = a > b;
    if (isNew)
      result.problem.addEdge(std::min(a, b), std::max(a, b), std::vector<double>(rows * columns));
    std::vector<double> &sums = result.problem.allEdges[entry->second].seconds;
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j)
        sums[isTurned ? j * rows + i : i * columns + j] += edge.seconds[i * columns + j];
  }
  return result;
}

} // namespace hpc::search
