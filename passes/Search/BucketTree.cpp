// The next variable is the one that joins the fewest pairs of strategies; of equals the first. Tables keep infinities, so nothing is ever
// subtracted from one.
#include "passes/Search/BucketTree.h"

#include <algorithm>
#include <set>

namespace hpc::search {

static constexpr double mostEntries = double(1 << 24); // of all tables

// ---- tables -------------------------------------------------------------------------------------

CostTable::CostTable(std::vector<size_t> of, const LayoutProblem &problem) : variables(std::move(of)) {
  size_t entries = 1;
  for (size_t variable : variables) {
    sizes.push_back(problem.strategies(variable).size());
    entries *= sizes.back();
  }
  values.assign(entries, 0);
}

std::vector<size_t> CostTable::entriesOf(const CostTable &part) const {
  // The step of each of our variables in the part's numbering.
  std::vector<size_t> steps(variables.size(), 0);
  size_t step = 1;
  for (size_t i = part.variables.size(); i-- > 0; step *= part.sizes[i])
    steps[size_t(std::find(variables.begin(), variables.end(), part.variables[i]) - variables.begin())] = step;
  std::vector<size_t> entries(values.size()), digits(variables.size(), 0);
  size_t entry = 0;
  for (size_t &each : entries) {
    each = entry;
    for (size_t i = variables.size(); i-- > 0;) {
      entry += steps[i];
      if (++digits[i] < sizes[i])
        break;
      entry -= steps[i] * sizes[i];
      digits[i] = 0;
    }
  }
  return entries;
}

void CostTable::add(const CostTable &part) {
  std::vector<size_t> entries = entriesOf(part);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] += part.values[entries[i]];
}

CostTable CostTable::minimum(const std::vector<size_t> &kept, const LayoutProblem &problem) const {
  CostTable result(kept, problem);
  result.values.assign(result.values.size(), impossible);
  std::vector<size_t> entries = entriesOf(result);
  for (size_t i = 0; i < values.size(); ++i)
    result.values[entries[i]] = std::min(result.values[entries[i]], values[i]);
  return result;
}

// ---- the tree -----------------------------------------------------------------------------------

BucketTree::BucketTree(const LayoutProblem &problem) : problem(problem) {
  const size_t number = problem.size();
  std::vector<std::set<size_t>> neighbours(number);
  std::vector<std::vector<size_t>> edges(number);
  for (const LayoutProblem::Edge &edge : problem.edges()) {
    neighbours[edge.a].insert(edge.b);
    neighbours[edge.b].insert(edge.a);
    edges[edge.a].push_back(size_t(&edge - problem.edges().data()));
    edges[edge.b].push_back(size_t(&edge - problem.edges().data()));
  }
  auto entries = [&](size_t variable) {
    double product = double(problem.strategies(variable).size());
    for (size_t neighbour : neighbours[variable])
      product *= double(problem.strategies(neighbour).size());
    return product;
  };
  // By entries, then by number: what is eliminated next is the first.
  std::set<std::pair<double, size_t>> open;
  std::vector<double> known(number);
  for (size_t variable = 0; variable < number; ++variable)
    open.insert({known[variable] = entries(variable), variable});
  std::vector<size_t> bucketOf(number, number);
  while (!open.empty()) {
    size_t variable = open.begin()->second;
    open.erase(open.begin());
    Bucket bucket;
    bucket.variable = variable;
    bucket.separator.assign(neighbours[variable].begin(), neighbours[variable].end());
    bucketOf[variable] = all.size();
    edgesOf.emplace_back();
    for (size_t edge : edges[variable])
      if (const LayoutProblem::Edge &each = problem.edges()[edge];
          bucketOf[each.a == variable ? each.b : each.a] == number)
        edgesOf.back().push_back(edge);
    for (size_t neighbour : bucket.separator) {
      neighbours[neighbour].erase(variable);
      neighbours[neighbour].insert(bucket.separator.begin(), bucket.separator.end());
      neighbours[neighbour].erase(neighbour);
    }
    for (size_t neighbour : bucket.separator) {
      open.erase({known[neighbour], neighbour});
      open.insert({known[neighbour] = entries(neighbour), neighbour});
    }
    all.push_back(std::move(bucket));
  }
  for (Bucket &bucket : all) {
    for (size_t variable : bucket.separator)
      bucket.parent = std::min(bucket.parent.value_or(all.size()), bucketOf[variable]);
    if (bucket.parent)
      all[*bucket.parent].children.push_back(size_t(&bucket - all.data()));
  }
}

std::vector<size_t> BucketTree::scopeOf(const Bucket &bucket) const {
  std::vector<size_t> scope = bucket.separator;
  scope.push_back(bucket.variable);
  return scope;
}

Status BucketTree::checkWidth() const {
  double sum = 0, most = 0;
  const Bucket *largest = nullptr;
  for (const Bucket &bucket : all) {
    double entries = 1;
    for (size_t variable : scopeOf(bucket))
      entries *= double(problem.strategies(variable).size());
    sum += entries;
    if (entries > most) {
      most = entries;
      largest = &bucket;
    }
  }
  if (sum <= mostEntries)
    return Status::success();
  return Status::error(ErrorKind::Unsupported, "layout problem: '" + problem.name(largest->variable) + "' and " + std::to_string(largest->separator.size()) +
                                                   " other ops are so intertwined that tables of their strategies are too large; use fewer mesh axes");
}

CostTable BucketTree::own(const Bucket &bucket, const Prices &prices) const {
  CostTable table(scopeOf(bucket), problem);
  CostTable alone({bucket.variable}, problem);
  for (size_t strategy = 0; strategy < alone.values.size(); ++strategy)
    alone.values[strategy] = prices.ofStrategy(bucket.variable, strategy);
  table.add(alone);
  for (size_t number : edgesOf[size_t(&bucket - all.data())]) {
    const LayoutProblem::Edge &edge = problem.edges()[number];
    CostTable pairs({edge.a, edge.b}, problem);
    pairs.values = edge.seconds;
    if (!prices.countsEdges)
      for (double &seconds : pairs.values)
        seconds = seconds == impossible ? impossible : 0;
    table.add(pairs);
  }
  return table;
}

BucketTree::Costs BucketTree::minimize(const Prices &prices) const {
  Costs costs;
  costs.messages.resize(all.size());
  std::vector<std::vector<uint32_t>> best(all.size()); // by entry of the separator
  for (size_t number = 0; number < all.size(); ++number) {
    const Bucket &bucket = all[number];
    CostTable table = own(bucket, prices);
    for (size_t child : bucket.children)
      table.add(costs.messages[child]);
    size_t strategies = table.sizes.back();
    CostTable &message = costs.messages[number] = CostTable(bucket.separator, problem);
    best[number].resize(message.values.size());
    for (size_t entry = 0; entry < message.values.size(); ++entry) {
      auto from = table.values.begin() + std::ptrdiff_t(entry * strategies);
      auto least = std::min_element(from, from + std::ptrdiff_t(strategies));
      message.values[entry] = *least;
      best[number][entry] = uint32_t(least - from);
    }
    if (!bucket.parent)
      costs.least += message.values.front();
  }
  costs.chosen.resize(problem.size());
  for (size_t number = all.size(); number-- > 0;) {
    size_t entry = 0;
    for (size_t variable : all[number].separator)
      entry = entry * problem.strategies(variable).size() + costs.chosen[variable];
    costs.chosen[all[number].variable] = best[number][entry];
  }
  return costs;
}

std::vector<CostTable> BucketTree::outside(const Prices &prices, const Costs &costs) const {
  std::vector<CostTable> result(all.size());
  for (size_t number = all.size(); number-- > 0;) {
    const Bucket &bucket = all[number];
    if (!bucket.parent) {
      result[number] = CostTable({}, problem);
      for (size_t other = 0; other < all.size(); ++other)
        if (!all[other].parent && other != number)
          result[number].values.front() += costs.messages[other].values.front();
    }
    for (size_t child : bucket.children) {
      CostTable table = own(bucket, prices);
      table.add(result[number]);
      for (size_t other : bucket.children)
        if (other != child)
          table.add(costs.messages[other]);
      result[child] = table.minimum(all[child].separator, problem);
    }
  }
  return result;
}

} // namespace hpc::search
