// The order in which a problem's variables are eliminated, and sums of costs over their strategies as tables.
// A bucket is a variable with the later ones that its elimination joins; its parent is the first of these.
#pragma once

#include "passes/Search/LayoutProblem.h"

#include <functional>

namespace hpc::search {

/// Costs by the strategies of some variables; the last one is the fastest.
struct CostTable {
  std::vector<size_t> variables, sizes;
  std::vector<double> values;

  CostTable() = default;
  CostTable(std::vector<size_t> variables, const LayoutProblem &problem);
  /// Adds a table of some of the variables.
  void add(const CostTable &part);
  /// Per entry, the number of the entry of `part` that it agrees with.
  std::vector<size_t> entriesOf(const CostTable &part) const;
  /// The least over all variables but those of `kept`, of which `kept` is a subset.
  CostTable minimum(const std::vector<size_t> &kept, const LayoutProblem &problem) const;
};

struct Bucket {
  size_t variable = 0;
  std::vector<size_t> separator; ///< variables that are eliminated later, in the order of their numbers
  std::vector<size_t> children;  ///< buckets whose message this one takes
  std::optional<size_t> parent;  ///< none: nothing is left to join
};

class BucketTree {
public:
  /// `problem` has no ties, and outlives the tree.
  explicit BucketTree(const LayoutProblem &problem);
  /// Errors (unsupported): tables of more than 2^24 entries in all.
  Status checkWidth() const;
  const std::vector<Bucket> &buckets() const { return all; }

  /// Cost of a strategy; edges cost their seconds, unless only what is possible counts.
  struct Prices {
    std::function<double(size_t variable, size_t strategy)> ofStrategy;
    bool countsEdges = true;
  };
  struct Costs {
    double least = 0;
    std::vector<size_t> chosen;
    std::vector<CostTable> messages; ///< by bucket: the least of its part of the tree, by the separator
  };
  Costs minimize(const Prices &prices) const;
  /// By bucket: the least of all that is not in its part of the tree, by the separator.
  std::vector<CostTable> outside(const Prices &prices, const Costs &costs) const;
  /// The bucket's own strategies and edges, by separator and variable.
  CostTable own(const Bucket &bucket, const Prices &prices) const;

private:
  std::vector<size_t> scopeOf(const Bucket &bucket) const;

  const LayoutProblem &problem;
  std::vector<Bucket> all;                    ///< in the order of elimination
  std::vector<std::vector<size_t>> edgesOf;   ///< by bucket: edges to later variables
};

} // namespace hpc::search
