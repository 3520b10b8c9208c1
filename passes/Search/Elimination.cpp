// First strategies that another one beats whatever the others take are dropped, then tables are summed along a bucket tree. Under a
// capacity: the best multiplier by cutting planes, then lists of all partial solutions whose bound is below a limit that grows until one fits.
#include "passes/Search/Elimination.h"

#include "passes/Search/BucketTree.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace hpc::search {

using Solution = LayoutProblem::Solution;

// ---- strategies that are never needed -----------------------------------------------------------

namespace {
/// A problem with fewer strategies, and which ones of the whole one they are.
struct Reduced {
  LayoutProblem problem;
  std::vector<std::vector<size_t>> kept;
};
} // namespace

static Reduced keepOnly(const LayoutProblem &problem, std::vector<std::vector<size_t>> kept) {
  Reduced result;
  for (size_t variable = 0; variable < problem.size(); ++variable) {
    std::vector<LayoutProblem::Strategy> strategies;
    for (size_t strategy : kept[variable])
      strategies.push_back(problem.strategies(variable)[strategy]);
    result.problem.addVariable(problem.name(variable), std::move(strategies));
  }
  for (const LayoutProblem::Edge &edge : problem.edges()) {
    std::vector<double> seconds;
    for (size_t a : kept[edge.a])
      for (size_t b : kept[edge.b])
        seconds.push_back(edge.seconds[a * problem.strategies(edge.b).size() + b]);
    result.problem.addEdge(edge.a, edge.b, std::move(seconds));
  }
  if (problem.capacity())
    result.problem.setCapacity(*problem.capacity());
  result.kept = std::move(kept);
  return result;
}

/// Drops strategies that another one of the same variable beats, whatever its neighbours take (Desmet et al. 1992, dead-end elimination).
static Reduced withoutBeaten(const LayoutProblem &problem) {
  std::vector<std::vector<size_t>> kept(problem.size()), edgesOf(problem.size());
  for (size_t variable = 0; variable < problem.size(); ++variable)
    for (size_t strategy = 0; strategy < problem.strategies(variable).size(); ++strategy)
      if (problem.strategies(variable)[strategy].seconds != impossible)
        kept[variable].push_back(strategy);
  for (const LayoutProblem::Edge &edge : problem.edges()) {
    edgesOf[edge.a].push_back(size_t(&edge - problem.edges().data()));
    edgesOf[edge.b].push_back(size_t(&edge - problem.edges().data()));
  }
  // By how much `better` can be the worse one at most.
  auto excess = [&](size_t variable, size_t better, size_t worse) {
    const std::vector<LayoutProblem::Strategy> &strategies = problem.strategies(variable);
    if (strategies[better].memory > strategies[worse].memory)
      return impossible;
    double sum = strategies[better].seconds - strategies[worse].seconds;
    for (size_t number : edgesOf[variable]) {
      const LayoutProblem::Edge &edge = problem.edges()[number];
      bool isFirst = edge.a == variable;
      size_t columns = problem.strategies(edge.b).size();
      double most = -impossible;
      for (size_t other : kept[isFirst ? edge.b : edge.a]) {
        double with = edge.seconds[isFirst ? better * columns + other : other * columns + better];
        double without = edge.seconds[isFirst ? worse * columns + other : other * columns + worse];
        if (without != impossible)
          most = std::max(most, with - without);
      }
      sum += most;
    }
    return sum;
  };
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (size_t variable = 0; variable < problem.size(); ++variable)
      for (size_t i = 0; i < kept[variable].size();) {
        bool isBeaten = std::any_of(kept[variable].begin(), kept[variable].end(), [&](size_t better) {
          return better != kept[variable][i] && excess(variable, better, kept[variable][i]) <= 0;
        });
        isChanged |= isBeaten;
        if (isBeaten)
          kept[variable].erase(kept[variable].begin() + std::ptrdiff_t(i));
        else
          ++i;
      }
  }
  return keepOnly(problem, std::move(kept));
}

// ---- under a capacity ---------------------------------------------------------------------------

namespace {
/// A choice for all variables of a bucket's part of the tree, given those of its separator.
struct Partial {
  double seconds = 0;
  int64_t memory = 0;
  size_t strategy = 0;
  std::vector<uint32_t> children; ///< numbers of their partial solutions
};

/// All partial solutions that may be part of one with a bound of at most `limit`.
class PartialLists {
public:
  PartialLists(const LayoutProblem &problem, const BucketTree &tree, double multiplier)
      : problem(problem), tree(tree), multiplier(multiplier),
        priced{[&problem, multiplier](size_t variable, size_t strategy) {
          const LayoutProblem::Strategy &each = problem.strategies(variable)[strategy];
          return each.seconds + multiplier * double(each.memory);
        }},
        costs(tree.minimize(priced)), outside(tree.outside(priced, costs)) {}

  /// The best solution of at most `limit` seconds in the capacity.
  std::optional<Solution> solve(double limit) {
    const double most = limit + multiplier * double(*problem.capacity());
    const BucketTree::Prices seconds{[this](size_t variable, size_t strategy) { return problem.strategies(variable)[strategy].seconds; }};
    lists.assign(tree.buckets().size(), {});
    std::vector<size_t> roots;
    for (size_t number = 0; number < tree.buckets().size(); ++number) {
      const Bucket &bucket = tree.buckets()[number];
      if (!bucket.parent)
        roots.push_back(number);
      fill(number, tree.own(bucket, seconds), most);
    }
    // Parts without an edge between them: one more bucket, whose children are the roots.
    std::vector<Partial> whole = {{}};
    double open = costs.least;
    for (size_t root : roots) {
      open -= costs.messages[root].values.front();
      whole = joined(whole, lists[root].front(), most - open);
    }
    const Partial *best = nullptr;
    for (const Partial &each : whole)
      if (each.memory <= *problem.capacity() && (!best || each.seconds < best->seconds))
        best = &each;
    if (!best || best->seconds > limit)
      return std::nullopt;
    Solution solution;
    solution.chosen.resize(problem.size());
    for (size_t i = 0; i < roots.size(); ++i)
      choose(roots[i], best->children[i], solution.chosen);
    return solution;
  }

private:
  /// Each of `left` with each of `right`, without those beaten in both seconds and memory, and those that cost more than `most`.
  std::vector<Partial> joined(const std::vector<Partial> &left, const std::vector<Partial> &right, double most) const {
    std::vector<Partial> all;
    for (const Partial &a : left)
      for (size_t i = 0; i < right.size(); ++i) {
        Partial both = a;
        both.seconds += right[i].seconds;
        both.memory += right[i].memory;
        if (!(both.seconds + multiplier * double(both.memory) <= most))
          continue;
        both.children.push_back(uint32_t(i));
        all.push_back(std::move(both));
      }
    return withoutDominated(std::move(all));
  }

  static std::vector<Partial> withoutDominated(std::vector<Partial> all) {
    std::sort(all.begin(), all.end(), [](const Partial &a, const Partial &b) {
      return std::tie(a.memory, a.seconds, a.strategy, a.children) < std::tie(b.memory, b.seconds, b.strategy, b.children);
    });
    std::vector<Partial> kept;
    for (Partial &each : all)
      if (kept.empty() || each.seconds < kept.back().seconds)
        kept.push_back(std::move(each));
    return kept;
  }

  void fill(size_t number, const CostTable &own, double most) {
    const Bucket &bucket = tree.buckets()[number];
    const CostTable &rest = outside[number];
    size_t strategies = own.sizes.back();
    std::vector<std::vector<size_t>> entries;
    for (size_t child : bucket.children)
      entries.push_back(own.entriesOf(costs.messages[child]));
    lists[number].resize(rest.values.size());
    for (size_t entry = 0; entry < own.values.size(); ++entry) {
      if (own.values[entry] == impossible || rest.values[entry / strategies] == impossible)
        continue;
      size_t strategy = entry % strategies;
      std::vector<Partial> all = {{own.values[entry], problem.strategies(bucket.variable)[strategy].memory, strategy, {}}};
      double open = rest.values[entry / strategies];
      for (size_t i = 0; i < bucket.children.size(); ++i)
        open += costs.messages[bucket.children[i]].values[entries[i][entry]];
      if (open == impossible)
        continue;
      if (bucket.children.empty() && !(all.front().seconds + multiplier * double(all.front().memory) + open <= most))
        continue;
      for (size_t i = 0; i < bucket.children.size(); ++i) {
        open -= costs.messages[bucket.children[i]].values[entries[i][entry]];
        all = joined(all, lists[bucket.children[i]][entries[i][entry]], most - open);
      }
      std::vector<Partial> &list = lists[number][entry / strategies];
      list.insert(list.end(), std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()));
    }
    for (std::vector<Partial> &list : lists[number])
      list = withoutDominated(std::move(list));
  }

  void choose(size_t number, size_t partial, std::vector<size_t> &chosen) const {
    const Bucket &bucket = tree.buckets()[number];
    size_t entry = 0;
    for (size_t variable : bucket.separator)
      entry = entry * problem.strategies(variable).size() + chosen[variable];
    const Partial &taken = lists[number][entry][partial];
    chosen[bucket.variable] = taken.strategy;
    for (size_t i = 0; i < bucket.children.size(); ++i)
      choose(bucket.children[i], taken.children[i], chosen);
  }

  const LayoutProblem &problem;
  const BucketTree &tree;
  const double multiplier;
  const BucketTree::Prices priced;
  const BucketTree::Costs costs;
  const std::vector<CostTable> outside;
  std::vector<std::vector<std::vector<Partial>>> lists; ///< by bucket, by entry of its separator
};
} // namespace

static Status nothingFits(const std::string &why) { return Status::error(ErrorKind::Capacity, "layout problem: " + why); }

/// `fast` is the fastest solution, which does not fit.
static Expected<Solution> solveUnderCapacity(const LayoutProblem &problem, const BucketTree &tree, Solution fast) {
  const int64_t capacity = *problem.capacity();
  auto solutionOf = [&](std::vector<size_t> chosen) {
    double seconds = problem.secondsOf(chosen);
    int64_t memory = problem.memoryOf(chosen);
    return Solution{std::move(chosen), seconds, memory, 0};
  };
  auto memoryOf = [&](size_t variable, size_t strategy) { return double(problem.strategies(variable)[strategy].memory); };
  Solution small = solutionOf(tree.minimize({memoryOf, false}).chosen);
  if (small.memory > capacity)
    return nothingFits("the least memory is " + std::to_string(small.memory) + " bytes, of " + std::to_string(capacity));
  // 1. The multiplier of the best bound: where the line through a solution that fits and one that does not has none below it.
  double multiplier = 0, bound = fast.seconds;
  while (true) {
    double next = (small.seconds - fast.seconds) / double(fast.memory - small.memory);
    if (!(next > 0)) // the one that fits is as fast
      break;
    auto price = [&](size_t variable, size_t strategy) {
      const LayoutProblem::Strategy &each = problem.strategies(variable)[strategy];
      return each.seconds + next * double(each.memory);
    };
    BucketTree::Costs costs = tree.minimize({price});
    if (double here = costs.least - next * double(capacity); here > bound) {
      bound = here;
      multiplier = next;
    }
    double line = small.seconds + next * double(small.memory);
    if (costs.least >= line - 1e-12 * std::abs(line))
      break;
    Solution found = solutionOf(costs.chosen);
    (found.memory <= capacity ? small : fast) = std::move(found);
  }
  // 2. All that may lie between the bound and a limit, which is at last the solution that fits.
  PartialLists lists(problem, tree, multiplier);
  const double slack = 1e-12 * std::abs(small.seconds);
  for (double part = 1.0 / 64; bound + slack < small.seconds; part *= 4) {
    double limit = part < 1 ? bound + part * (small.seconds - bound) : small.seconds;
    if (std::optional<Solution> found = lists.solve(limit + slack)) {
      Solution best = solutionOf(std::move(found->chosen));
      best.bound = best.seconds;
      return best;
    }
    if (part >= 1)
      break;
  }
  small.bound = small.seconds;
  return small;
}

// ---- the solver ---------------------------------------------------------------------------------

Expected<Solution> solveByElimination(const LayoutProblem &problem) {
  HPC_RETURN_IF_ERROR(problem.check());
  LayoutProblem::Condensed condensed = problem.condensed();
  Reduced reduced = withoutBeaten(condensed.problem);
  for (size_t variable = 0; variable < reduced.problem.size(); ++variable)
    if (reduced.kept[variable].empty())
      return nothingFits("no strategy of '" + condensed.problem.name(variable) + "' is possible");
  BucketTree tree(reduced.problem);
  HPC_RETURN_IF_ERROR(tree.checkWidth());
  BucketTree::Costs costs =
      tree.minimize({[&](size_t variable, size_t strategy) { return reduced.problem.strategies(variable)[strategy].seconds; }});
  if (costs.least == impossible)
    return nothingFits("no strategies of all ops go together");
  Solution solution{costs.chosen, reduced.problem.secondsOf(costs.chosen), reduced.problem.memoryOf(costs.chosen), 0};
  solution.bound = solution.seconds;
  if (problem.capacity() && solution.memory > *problem.capacity()) {
    Expected<Solution> fitting = solveUnderCapacity(reduced.problem, tree, std::move(solution));
    if (!fitting.ok())
      return fitting;
    solution = std::move(*fitting);
  }
  std::vector<size_t> chosen;
  for (size_t variable = 0; variable < problem.size(); ++variable)
    chosen.push_back(reduced.kept[condensed.of[variable]][solution.chosen[condensed.of[variable]]]);
  solution = {chosen, problem.secondsOf(chosen), problem.memoryOf(chosen), 0};
  solution.bound = solution.seconds;
  return solution;
}

Expected<double> secondsWith(const LayoutProblem &problem, LayoutProblem::Variable variable, size_t strategy) {
  LayoutProblem::Condensed condensed = problem.condensed();
  std::vector<std::vector<size_t>> kept(condensed.problem.size());
  for (size_t each = 0; each < kept.size(); ++each)
    for (size_t i = 0; i < condensed.problem.strategies(each).size(); ++i)
      if (each != condensed.of[variable] || i == strategy)
        kept[each].push_back(i);
  Expected<Solution> solution = solveByElimination(keepOnly(condensed.problem, std::move(kept)).problem);
  return solution.ok() ? Expected<double>(solution->seconds) : solution.status();
}

} // namespace hpc::search
