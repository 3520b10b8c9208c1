// The candidates of a search, and what is known about each: a bound, an estimate from profiles of blocks, a compilation without code. Rows get
// better known in batches, in an order that follows from the rows alone, so threads change nothing.
#pragma once

#include "passes/Driver/Trial.h"
#include "passes/Search/Estimate.h"

#include <deque>

namespace hpc::search {

struct Row {
  Candidate candidate;
  size_t number = 0; ///< of the candidate among all
  double guess = 0;                 ///< guessSeconds; of a family, a member's that is small
  Estimate bound;                   ///< no plan of the candidate goes below, by the program and by profiles of others
  std::optional<Estimate> estimate; ///< by its own profile
  std::optional<Trial> trial;       ///< of a candidate that compiles
  size_t keepsAll = 0;              ///< the row of the same candidate that computes nothing again
  bool profiled = false, tried = false;
  bool isFamily = false; ///< the row stands for all members of one

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
  std::deque<Row> rows;
  /// A row for each family whose members are no rows yet, with what bounds them all.
  std::vector<Row> closed;
  std::vector<Family> families; ///< of `closed`
  int64_t candidates = 0; ///< members of all families

  /// Starts anew with the candidates of as many devices as `space` has. Where they are few, all are rows at once.
  void addCandidates();
  /// Whether estimates are possible: the program repeats blocks.
  bool estimates() const { return profiler.repeats(); }
  /// A plan takes many seconds to compile, and its estimate is close.
  bool isLarge() const { return estimates() && work.ops >= 5000; }
  /// Finds the profiles that the rows lack and estimates all rows that share them. Returns how many were made.
  size_t profile(ArrayRef<Row *> batch);
  /// With the memory that the options allow, or without a limit.
  void compile(ArrayRef<Row *> batch, bool withoutLimit = false);

  /// Adds `row`'s candidate with the weights cut as exact search finds best (LayoutChoice.h), compiled; nothing where there is no such layout.
  void addChosenLayout(const Row &row);

  /// Rows that `isWanted`, those with the smallest `key` first, `most` of them; equal ones in the order of candidates. Families that may have one of them are opened.
  template <typename Wanted, typename Key> SmallVector<Row *> first(size_t most, Wanted isWanted, Key key) {
    auto precedes = [&](const Row *a, const Row *b) { return std::pair(key(*a), a->number) < std::pair(key(*b), b->number); };
    while (true) {
      SmallVector<Row *> found;
      for (Row &row : rows)
        if (!row.isRefused() && isWanted(row))
          found.push_back(&row);
      const size_t count = std::min(most, found.size());
      std::partial_sort(found.begin(), found.begin() + count, found.end(), precedes);
      found.resize(count);
      Row *next = nullptr;
      for (Row &family : closed)
        if (isWanted(family) && (!next || precedes(&family, next)))
          next = &family;
      if (!next || (count == most && precedes(found.back(), next)))
        return found;
      open(size_t(next - closed.data()));
    }
  }

  /// Adds `row`'s candidate with its layers over the stages as StageProblem shares them best within the memory, estimated; null where there is no such split, it is no
  /// better than the balanced one, or the profile's blocks are not those between which stages are cut.
  Row *addChosenSplit(const Row &row);

private:
  const Profiled *profileOf(const Candidate &candidate, StringRef recompute) const;
  void open(size_t family);
  double guess(const Candidate &candidate) const;
  /// Takes what a profile says of a row.
  void learn(Row &row, const Profiled &profiled) const;
  void estimate(Row &row) const;

  MLIRContext *context() const { return ModuleOp(programs.whole).getContext(); }
  OwningOpRef<ModuleOp> withSidecar(const Candidate &candidate) const;

  Programs programs;
  BlockProfiler profiler;
  std::deque<Profiled> profiles;
  std::vector<Candidate> withoutProfile; ///< whose profiles do not compile
};

} // namespace hpc::search
