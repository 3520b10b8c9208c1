// Candidates with the ranks that there are come first; those with more are tried only where fewer than three fit.
#include "passes/Driver/Alternatives.h"

#include "passes/Driver/ProfileEstimate.h"
#include "runtime/base/ByteSize.h"

#include "mlir/IR/Threading.h"

#include <algorithm>

namespace hpc {

namespace {
constexpr size_t wanted = 3;

struct Candidate {
  Options options;
  std::string flags; ///< those that differ
};

struct Fit {
  std::string text;
  double cost = 0;
};

// A candidate with one thing else; null where that changes nothing or is not possible.

std::optional<Candidate> withFlag(Candidate candidate, const std::string &flag) {
  candidate.flags += (candidate.flags.empty() ? "" : " ") + flag;
  return candidate;
}

std::optional<Candidate> recomputing(const Candidate &from) {
  if (!from.options.trains() || from.options.recompute == "auto")
    return std::nullopt;
  Candidate next = from;
  next.options.recompute = "auto";
  return withFlag(next, "--recompute=auto");
}
std::optional<Candidate> withZero(const Candidate &from, int64_t level) {
  if (!from.options.trains() || from.options.degrees.rowRanks() == 1 || from.options.zero >= level)
    return std::nullopt;
  Candidate next = from;
  next.options.zero = level;
  return withFlag(next, "--zero=" + std::to_string(level));
}
/// An axis of a role, so many times as long.
std::optional<Candidate> withDegree(const Candidate &from, dist::AxisRole role, int64_t factor) {
  if (role == dist::AxisRole::Pipeline && factor > 1 && from.options.ppSplit != "balanced")
    return std::nullopt; // a list of the user's, one entry a stage
  if (role == dist::AxisRole::Tensor && factor > 1 && from.options.tpLayout != Options().tpLayout)
    return std::nullopt; // sizes of the user's
  Candidate next = from;
  for (auto [kind, axis] : llvm::zip_equal(dist::axisKinds(), next.options.degrees.axes))
    if (factor > 1 && axis.role == role) {
      axis.size *= factor;
      return withFlag(next, "--" + std::string(kind.flag) + "=" + std::to_string(axis.size));
    }
  return next;
}

void add(std::vector<Candidate> &all, const std::optional<Candidate> &one) {
  if (one)
    all.push_back(*one);
}

std::vector<Candidate> withSameRanks(const Candidate &given) {
  std::vector<Candidate> all;
  for (int64_t level : {1, 2, 3})
    if (level != 2 || given.options.microBatches() > 1) // 2 is 1 without micro-batches
      add(all, withZero(given, level));
  for (int64_t factor : {2, 4})
    if (std::optional<Candidate> next = withDegree(given, dist::AxisRole::Time, factor)) {
      add(all, next);
      add(all, withZero(*next, 3));
    }
  return all;
}

/// `activationsDecide`: what outlives a micro-batch fits, so that ranks which share a sequence may help.
std::vector<Candidate> withMoreRanks(const Candidate &given, int64_t factor, bool activationsDecide) {
  std::vector<Candidate> all;
  for (int64_t tp = 1; tp <= factor; tp *= 2)
    if (std::optional<Candidate> next = withDegree(given, dist::AxisRole::Tensor, tp))
      add(all, withDegree(*next, dist::AxisRole::Pipeline, factor / tp));
  if (activationsDecide || given.options.zero > 0)
    add(all, withDegree(given, dist::AxisRole::Sequence, factor)); // fails where nothing has positions
  return all;
}

enum class Outcome { Fits, TooLarge, Hopeless };

/// Of a try that does not fit.
Outcome outcomeOf(const Trial &trial, const Options &options) {
  return trial.lasting() > options.memory ? Outcome::Hopeless : Outcome::TooLarge;
}

/// By cost; of equals the one that was tried first.
void addFit(std::vector<Fit> &fits, Fit fit) {
  auto place = llvm::upper_bound(fits, fit.cost, [](auto cost, const Fit &other) { return cost < other.cost; });
  fits.insert(place, std::move(fit));
}

/// One candidate's tries.
struct Attempt {
  Trials &trials;
  BlockProfiler *blocks;
  StagedTrials tries = {};
  std::vector<Fit> fits = {};
};

/// "--dp=4 (1.2 GiB on each of 8 ranks)"
std::string textOf(const Candidate &candidate, const std::string &about, int64_t peak, int64_t ranks) {
  const int64_t needed = dist::ranksOf(candidate.options.degrees);
  return candidate.flags + " (" + about + byteSizeText(peak) + (needed == ranks ? "" : " on each of " + std::to_string(needed) + " ranks") + ")";
}

/// nullopt: the profile does not have it.
std::optional<Outcome> estimateOne(Attempt &attempt, const Candidate &candidate, int64_t ranks) {
  if (attempt.trials.meanLasting(candidate.options) > candidate.options.memory)
    return Outcome::Hopeless;
  Options options = candidate.options;
  options.memory -= options.memory / 100;
  Expected<ProfileEstimate> estimate = estimateByProfile(*attempt.blocks, options);
  if (!estimate.ok())
    return std::nullopt;
  if (estimate->peak() > options.memory)
    return estimate->lasting > options.memory ? Outcome::Hopeless : Outcome::TooLarge;
  addFit(attempt.fits, {textOf(candidate, "about ", estimate->peak(), ranks), estimate->seconds * double(dist::ranksOf(options.degrees))});
  return Outcome::Fits;
}

Outcome tryOne(Attempt &attempt, const Candidate &candidate, int64_t ranks) {
  if (attempt.blocks)
    if (std::optional<Outcome> outcome = estimateOne(attempt, candidate, ranks))
      return *outcome;
  Trials &trials = attempt.trials;
  if (Expected<int64_t> least = trials.leastLasting(candidate.options); least.ok() && *least > candidate.options.memory)
    return Outcome::Hopeless;
  if (Expected<bool> keepsTooMuch = trials.keepsTooMuch(candidate.options); keepsTooMuch.ok() && *keepsTooMuch)
    return Outcome::TooLarge;
  Expected<Trial> trial = trials.run(candidate.options, attempt.tries);
  if (!trial.ok())
    return Outcome::TooLarge;
  if (!trial->fits.ok())
    return outcomeOf(*trial, candidate.options);
  addFit(attempt.fits, {textOf(candidate, "", trial->peak(), ranks), trial->rankSeconds()});
  return Outcome::Fits;
}

/// What does not fit, with recomputation, where that may help.
void tryRecomputing(Attempt &attempt, const Candidate &candidate, Outcome outcome, int64_t ranks) {
  if (outcome == Outcome::TooLarge)
    if (std::optional<Candidate> next = recomputing(candidate))
      tryOne(attempt, *next, ranks);
}

/// On all threads that the machine has; what fits does not depend on them.
void tryAll(Trials &trials, BlockProfiler *blocks, const std::vector<Candidate> &candidates, int64_t ranks, std::vector<Fit> &fits) {
  std::vector<std::vector<Fit>> found(candidates.size());
  ManyThreads threads(trials.context());
  mlir::parallelFor(trials.context(), 0, candidates.size(), [&](size_t number) {
    Attempt attempt{trials, blocks};
    tryRecomputing(attempt, candidates[number], tryOne(attempt, candidates[number], ranks), ranks);
    trials.madePlans += attempt.tries.made();
    found[number] = std::move(attempt.fits);
  });
  for (std::vector<Fit> &each : found)
    for (Fit &fit : each)
      addFit(fits, std::move(fit));
}
} // namespace

std::string cheapestThatFit(Trials &trials, BlockProfiler *blocks, const Options &options, const Trial &given) {
  Candidate asked{options, ""};
  asked.options.budgets.clear();
  std::vector<Fit> fits;
  int64_t ranks = dist::ranksOf(options.degrees);
  Attempt first{trials, blocks};
  tryRecomputing(first, asked, outcomeOf(given, options), ranks);
  trials.madePlans += first.tries.made();
  fits = std::move(first.fits);
  tryAll(trials, blocks, withSameRanks(asked), ranks, fits);
  for (int64_t factor : {2, 4, 8})
    if (fits.size() < wanted)
      tryAll(trials, blocks, withMoreRanks(asked, factor, outcomeOf(given, options) == Outcome::TooLarge), ranks, fits);
  if (fits.size() > wanted)
    fits.resize(wanted);
  std::string text;
  for (const Fit &fit : fits)
    text += (text.empty() ? "" : "; ") + fit.text;
  return text;
}

} // namespace hpc
