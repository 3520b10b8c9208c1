// Sums are formed on the way down, edge by edge as their later end is chosen. What has become no better than the best so far, with the least
// that the other variables take by themselves, is left; variables that share edges follow each other.
#include "BruteForce.h"

#include <Cbc_C_Interface.h>

#include <algorithm>

namespace hpc::search {

namespace {
struct AllChoices {
  const LayoutProblem &problem;
  double below;
  std::vector<size_t> order = {};                                     ///< of the variables
  std::vector<double> least = {};                                     ///< by place in the order: seconds of it and of all after it, without edges
  std::vector<std::vector<const LayoutProblem::Edge *>> closing = {}; ///< by variable: edges whose later end it is
  std::vector<size_t> chosen = {};
  std::vector<bool> isChosen = {};
  std::optional<LayoutProblem::Solution> best = {};

  void prepare() {
    std::vector<size_t> place(problem.size(), problem.size());
    while (order.size() < problem.size()) {
      size_t next = problem.size(), most = 0;
      for (size_t variable = 0; variable < problem.size(); ++variable) {
        if (place[variable] < problem.size())
          continue;
        size_t edges = 1;
        for (const LayoutProblem::Edge &edge : problem.edges())
          edges += (edge.a == variable && place[edge.b] < problem.size()) || (edge.b == variable && place[edge.a] < problem.size());
        if (edges > most) {
          most = edges;
          next = variable;
        }
      }
      place[next] = order.size();
      order.push_back(next);
    }
    closing.resize(problem.size());
    for (const LayoutProblem::Edge &edge : problem.edges())
      closing[place[edge.a] > place[edge.b] ? edge.a : edge.b].push_back(&edge);
    least.assign(problem.size() + 1, 0);
    for (size_t i = problem.size(); i-- > 0;) {
      double smallest = impossible;
      for (const LayoutProblem::Strategy &strategy : problem.strategies(order[i]))
        smallest = std::min(smallest, strategy.seconds);
      least[i] = least[i + 1] + smallest;
    }
    chosen.resize(problem.size());
    isChosen.resize(problem.size());
  }

  void choose(size_t number, double seconds, int64_t memory) {
    if (seconds + least[number] >= below)
      return;
    if (number == problem.size()) {
      if (memory <= problem.capacity().value_or(memory)) {
        best = LayoutProblem::Solution{chosen, seconds, memory, seconds};
        below = seconds;
      }
      return;
    }
    const size_t variable = order[number];
    isChosen[variable] = true;
    for (size_t strategy = 0; strategy < problem.strategies(variable).size(); ++strategy) {
      bool isAlike = true;
      for (size_t other = 0; other < problem.size(); ++other)
        isAlike &= !isChosen[other] || other == variable || problem.first(other) != problem.first(variable) || chosen[other] == strategy;
      if (!isAlike)
        continue;
      chosen[variable] = strategy;
      double sum = seconds + problem.strategies(variable)[strategy].seconds;
      for (const LayoutProblem::Edge *edge : closing[variable])
        sum += edge->seconds[chosen[edge->a] * problem.strategies(edge->b).size() + chosen[edge->b]];
      choose(number + 1, sum, memory + problem.strategies(variable)[strategy].memory);
    }
    isChosen[variable] = false;
  }
};
} // namespace

std::optional<LayoutProblem::Solution> solveByBruteForce(const LayoutProblem &problem, double below) {
  AllChoices all{problem, below};
  all.prepare();
  all.choose(0, 0, 0);
  return all.best;
}

std::optional<double> solveByCbc(const LayoutProblem &problem) {
  Cbc_Model *model = Cbc_newModel();
  Cbc_setParameter(model, "log", "0");
  Cbc_setParameter(model, "ratioGap", "0");
  Cbc_setParameter(model, "allowableGap", "0");
  double largest = 0; // seconds are small numbers, which CBC's tolerances would swallow
  auto measure = [&](double seconds) { largest = std::max(largest, seconds == impossible ? 0 : seconds); };
  for (size_t variable = 0; variable < problem.size(); ++variable)
    for (const LayoutProblem::Strategy &strategy : problem.strategies(variable))
      measure(strategy.seconds);
  for (const LayoutProblem::Edge &edge : problem.edges())
    std::for_each(edge.seconds.begin(), edge.seconds.end(), measure);
  const double scale = largest > 0 ? 1e4 / largest : 1;
  int columns = 0;
  auto addColumn = [&](double seconds, bool isInteger) {
    double most = seconds == impossible ? 0 : 1;
    Cbc_addCol(model, "", 0, most, seconds == impossible ? 0 : seconds * scale, isInteger, 0, nullptr, nullptr);
    return columns++;
  };
  auto addRow = [&](const std::vector<int> &of, const std::vector<double> &times, char sense, double right) {
    Cbc_addRow(model, "", int(of.size()), of.data(), times.data(), sense, right);
  };
  std::vector<int> firstColumn;
  std::vector<int> memoryColumns;
  std::vector<double> memory;
  for (size_t variable = 0; variable < problem.size(); ++variable) {
    firstColumn.push_back(columns);
    std::vector<int> own;
    for (const LayoutProblem::Strategy &strategy : problem.strategies(variable)) {
      own.push_back(addColumn(strategy.seconds, true));
      memoryColumns.push_back(own.back());
      memory.push_back(double(strategy.memory));
    }
    addRow(own, std::vector<double>(own.size(), 1), 'E', 1);
    if (size_t tied = problem.first(variable); tied != variable)
      for (size_t i = 0; i < own.size(); ++i)
        addRow({own[i], firstColumn[tied] + int(i)}, {1, -1}, 'E', 0);
  }
  for (const LayoutProblem::Edge &edge : problem.edges()) {
    size_t rows = problem.strategies(edge.a).size(), width = problem.strategies(edge.b).size();
    const int from = columns;
    for (double seconds : edge.seconds)
      addColumn(seconds, false);
    for (size_t i = 0; i < rows; ++i) {
      std::vector<int> of = {firstColumn[edge.a] + int(i)};
      for (size_t j = 0; j < width; ++j)
        of.push_back(from + int(i * width + j));
      std::vector<double> times(of.size(), 1);
      times.front() = -1;
      addRow(of, times, 'E', 0);
    }
    for (size_t j = 0; j < width; ++j) {
      std::vector<int> of = {firstColumn[edge.b] + int(j)};
      for (size_t i = 0; i < rows; ++i)
        of.push_back(from + int(i * width + j));
      std::vector<double> times(of.size(), 1);
      times.front() = -1;
      addRow(of, times, 'E', 0);
    }
  }
  if (problem.capacity())
    addRow(memoryColumns, memory, 'L', double(*problem.capacity()));
  Cbc_setObjSense(model, 1);
  Cbc_solve(model);
  std::optional<double> seconds;
  if (Cbc_isProvenOptimal(model))
    seconds = Cbc_getObjValue(model) / scale;
  Cbc_deleteModel(model);
  return seconds;
}

} // namespace hpc::search
