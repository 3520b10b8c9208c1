// The candidates of a search, and what is known about each: a bound, an estimate from profiles of blocks, a compilation without code. Rows get
// better known in batches, in an order that follows from the rows alone, so threads change nothing.
#pragma once

#include "passes/Driver/Trial.h"
#include "passes/Search/Estimate.h"

namespace hpc::search {

struct Row {
  Candidate candidate;
  Estimate bound;                   ///< no plan of the candidate goes below, by the program and by profiles of others
  std::optional<Estimate> estimate; ///< by its own profile
  std::optional<Trial> trial;       ///< of a candidate that compiles
  size_t keepsAll = 0;              ///< the row of the same candidate that computes nothing again
  bool profiled = false, tried = false;

  /// The best that is known.
  double seconds() const { return trial ? trial->seconds : estimate ? estimate->seconds : bound.seconds; }
  int64_t memory() const { return trial ? trial->peak() : estimate ? estimate->memory : bound.memory; }
  /// It does not compile, or its profile does not.
  bool isRefused() const { return (tried && !trial) || (profiled && !estimate); }
};

class CandidateTable {
public:
  /// `imported`: before all phases; `raised`: after phase raise; `whole`, `pieces`: after phase precision, for one micro-batch and for several.
  struct Programs {
    ModuleOp imported, raised, whole, pieces;
  };
  CandidateTable(Programs programs, Space space);

  Space space;
  const cost::Machine machine;
  const Work work;
  std::vector<Row> rows;

  /// Adds the candidates of as many devices as `space` has.
  void addRows();
  /// Whether estimates are possible: the program repeats blocks.
  bool estimates() const { return profiler.repeats(); }
  /// Finds the profiles that the rows lack and estimates all rows that share them. Returns how many were made.
  size_t profile(ArrayRef<Row *> batch);
  /// With the memory that the options allow, or without a limit.
  void compile(ArrayRef<Row *> batch, bool withoutLimit = false);

  /// Adds `row`'s candidate with the weights cut as exact search finds best (LayoutChoice.h), compiled; nothing where there is no such layout.
  void addChosenLayout(const Row &row);

  /// Rows that `isWanted`, those with the smallest `key` first, `most` of them; equal ones in their order.
  template <typename Wanted, typename Key> SmallVector<Row *> first(size_t most, Wanted isWanted, Key key) {
    SmallVector<Row *> found;
    for (Row &row : rows)
      if (!row.isRefused() && isWanted(row))
        found.push_back(&row);
    const size_t count = std::min(most, found.size());
    std::partial_sort(found.begin(), found.begin() + count, found.end(), [&](const Row *a, const Row *b) { return std::pair(key(*a), a) < std::pair(key(*b), b); });
    found.resize(count);
    return found;
  }

private:
  const Profiled *profileOf(const Candidate &candidate, StringRef recompute) const;
  void learn(const Profiled &profiled);
  void estimate(Row &row) const;

  MLIRContext *context() const { return ModuleOp(programs.whole).getContext(); }
  OwningOpRef<ModuleOp> withSidecar(const Candidate &candidate) const;

  Programs programs;
  BlockProfiler profiler;
  std::deque<Profiled> profiles;
};

} // namespace hpc::search
