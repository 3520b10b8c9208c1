// A batch is shared out to threads by what its rows have in common; results are taken in the order of the batch.
#include "passes/Search/CandidateTable.h"

#include "compiler/Sidecar/ModuleSidecar.h"
#include "compiler/Sidecar/TensorRules.h"
#include "passes/Search/LayoutChoice.h"
#include "passes/Search/StageSplit.h"

#include "mlir/IR/Threading.h"

#include <numeric>

namespace hpc::search {

/// The name of the search's own sidecar in messages.
constexpr const char *searchedSidecar = "the layout of --auto";

CandidateTable::CandidateTable(Programs programs, Space given)
    : space(std::move(given)), machine(machineOf(space.options)), work(workOf(programs.whole, machine, space.options.narrowsProducts() || space.options.quantizesWeights())), programs(programs), profiler(programs.raised, space.options) {
  space.blocks = 0;
  for (const BlockChain &chain : profiler.found())
    space.blocks = std::max(space.blocks, int64_t(chain.size()));
}

/// Whether `profiled` is one of the profiles that estimate a candidate.
static bool isProfile(const Candidate &profiled, const Candidate &candidate) {
  return standsFor(profiled, candidate) && (candidate.recompute == profiled.recompute || candidate.recompute == "auto");
}

/// Most candidates that are rows from the beginning: all of them stand in the answer then.
constexpr int64_t mostRows = 50000;

void CandidateTable::addCandidates() {
  rows.clear();
  closed.clear();
  families = familiesOf(space);
  candidates = 0;
  for (const Family &family : families) {
    Row row;
    row.candidate = family.fastest;
    row.number = size_t(candidates);
    row.bound = {leastSeconds(family.fastest, work, machine), leastMemory(family.thinnest, work)};
    Candidate thinner = family.thinnest;
    thinner.recompute = space.isDecided("recompute") || !space.options.trains() ? thinner.recompute : "full";
    row.guess = std::min(guess(family.fastest), guess(thinner));
    row.isFamily = true;
    candidates += family.members;
    closed.push_back(std::move(row));
  }
  if (candidates <= mostRows)
    while (!closed.empty())
      open(closed.size() - 1);
}

double CandidateTable::guess(const Candidate &candidate) const {
  return guessSeconds(candidate, work, machine, space);
}

void CandidateTable::open(size_t number) {
  const Row family = closed[number];
  const std::vector<Candidate> members = membersOf(space, families[number]);
  std::swap(closed[number], closed.back()); // rows have their order from their numbers
  std::swap(families[number], families.back());
  closed.pop_back();
  families.pop_back();
  for (auto [offset, candidate] : llvm::enumerate(members)) {
    Row row;
    row.number = family.number + offset;
    row.bound = {leastSeconds(candidate, work, machine), leastMemory(candidate, work)};
    // Policies of recomputation follow each other, the one that keeps everything first.
    row.keepsAll = candidate.recompute == "none" || space.isDecided("recompute") ? rows.size() : rows.back().keepsAll;
    row.candidate = candidate;
    row.guess = guess(candidate);
    for (const Profiled &profiled : profiles)
      learn(row, profiled);
    estimate(row);
    row.profiled = row.estimate || llvm::any_of(withoutProfile, [&](const Candidate &other) { return isProfile(other, row.candidate); });
    rows.push_back(std::move(row));
  }
}

// ---- profiles -----------------------------------------------------------------------------------

static Candidate recomputing(Candidate candidate, const char *policy) {
  candidate.recompute = policy;
  return candidate;
}

/// The candidates whose profiles estimate one.
static SmallVector<Candidate> profilesFor(const Candidate &candidate) {
  const Candidate own = profiledCandidate(candidate);
  if (own.recompute != "auto")
    return {own};
  return {recomputing(own, "none"), recomputing(own, "full")};
}

const Profiled *CandidateTable::profileOf(const Candidate &candidate, StringRef recompute) const {
  auto found = llvm::find_if(profiles, [&](const Profiled &each) { return each.candidate.recompute == recompute && standsFor(each.candidate, candidate); });
  return found == profiles.end() ? nullptr : &*found;
}

void CandidateTable::estimate(Row &row) const {
  const Candidate &candidate = row.candidate;
  if (candidate.recompute != "auto") {
    if (const Profiled *own = profileOf(candidate, candidate.recompute))
      row.estimate = estimateOf(candidate, own->profile);
    return;
  }
  const Profiled *all = profileOf(candidate, "none"), *none = profileOf(candidate, "full");
  if (all && none)
    row.estimate = estimateAuto(estimateOf(candidate, all->profile), estimateOf(candidate, none->profile), space.options.memory);
}

/// A profile bounds the memory of one member, and not of the others in its family.
void CandidateTable::learn(Row &row, const Profiled &profiled) const {
  const Estimate more = boundBy(profiled, row.candidate, work, space.batch);
  row.bound = {std::max(row.bound.seconds, more.seconds), row.isFamily ? row.bound.memory : std::max(row.bound.memory, more.memory)};
}

size_t CandidateTable::profile(ArrayRef<Row *> batch) {
  // 1. What is missing, each once.
  std::vector<Candidate> missing;
  for (Row *row : batch)
    for (const Candidate &candidate : profilesFor(row->candidate))
      if (!profileOf(candidate, candidate.recompute) &&
          llvm::none_of(missing, [&](const Candidate &other) { return other.recompute == candidate.recompute && standsFor(other, candidate); }))
        missing.push_back(candidate);
  // 2. Profiles.
  std::vector<std::optional<BlockProfile>> found(missing.size());
  {
    ManyThreads threads(context());
    mlir::parallelFor(context(), 0, missing.size(), [&](size_t number) {
      Options options = missing[number].options(space.options);
      options.memory = 0;
      if (Expected<BlockProfile> profile = profiler.profile(options); profile.ok())
        found[number] = std::move(*profile);
    });
  }
  // 3. Everybody learns from them; candidates without a profile are none of this model.
  for (auto [candidate, profile] : llvm::zip_equal(missing, found)) {
    if (profile) {
      const BlockShare all = profile->whole();
      profiles.push_back({candidate, std::move(*profile), all});
      for (Row &row : rows)
        learn(row, profiles.back());
      for (Row &family : closed)
        learn(family, profiles.back());
    } else {
      withoutProfile.push_back(candidate);
    }
    for (Row &row : rows) {
      if (row.profiled || !isProfile(candidate, row.candidate))
        continue;
      if (profile)
        estimate(row);
      row.profiled = row.estimate || !profile;
    }
  }
  return missing.size();
}

// ---- layouts by weights -------------------------------------------------------------------------

/// A sidecar is given before all phases, which keep the values apart that it names.
OwningOpRef<ModuleOp> CandidateTable::withSidecar(const Candidate &candidate) const {
  OwningOpRef<ModuleOp> program = ModuleOp(programs.imported).clone();
  setSidecar(*program, searchedSidecar, candidate.sidecar);
  if (Expected<Sidecar> sidecar = parseSidecar(candidate.sidecar, searchedSidecar); sidecar.ok())
    noteTensors(*program, *sidecar);
  return program;
}

void CandidateTable::addChosenLayout(const Row &from) {
  Row row;
  row.candidate = from.candidate;
  row.number = size_t(candidates++);
  row.bound = from.bound;
  Options options = from.candidate.options(space.options);
  options.sp = false;
  row.candidate.layout = options.layout();
  Expected<LayoutChoice> choice = chooseLayout(row.candidate.microBatches > 1 ? programs.pieces : programs.whole, options, machine);
  if (!choice.ok())
    return;
  row.candidate.sidecar = sidecarText(choice->sidecar);
  row.keepsAll = rows.size();
  rows.push_back(std::move(row));
  compile({&rows.back()});
}

// ---- layers over stages -------------------------------------------------------------------------

Row *CandidateTable::addChosenSplit(const Row &from) {
  const Candidate &candidate = from.candidate;
  const Profiled *own = candidate.pp > 1 && candidate.chunks == 1 && candidate.sidecar.empty() ? profileOf(candidate, candidate.recompute) : nullptr;
  if (!own || int64_t(profiler.unitCosts().size()) != std::accumulate(own->profile.blocks.begin(), own->profile.blocks.end(), int64_t(0)))
    return nullptr;
  Expected<StageProblem> problem = stageProblemOf(own->profile, candidate.options(space.options));
  if (!problem.ok())
    return nullptr;
  Expected<StageProblem::Solution> solution = splitStages(*problem);
  if (!solution.ok())
    return nullptr;
  Row row;
  row.candidate = candidate;
  row.candidate.split = splitText(*solution);
  row.estimate = estimateOf(row.candidate, own->profile);
  if (const Estimate balanced = estimateOf(candidate, own->profile); row.estimate->seconds >= balanced.seconds && row.estimate->memory >= balanced.memory)
    return nullptr;
  row.number = size_t(candidates++);
  row.bound = {from.bound.seconds, leastMemory(candidate, work)};
  row.profiled = true;
  row.keepsAll = rows.size();
  rows.push_back(std::move(row));
  return &rows.back();
}

// ---- compilations -------------------------------------------------------------------------------

/// Candidates that share their program up to phase partition follow each other in one thread, which keeps it no longer.
void CandidateTable::compile(ArrayRef<Row *> batch, bool withoutLimit) {
  auto shares = [](const Candidate &a, const Candidate &b) {
    auto fields = [](const Candidate &c) { return std::tie(c.dp, c.cp, c.tp, c.layout, c.cpMode, c.microBatches, c.zero, c.sidecar); };
    return fields(a) == fields(b);
  };
  SmallVector<SmallVector<Row *>> groups;
  for (Row *row : batch) {
    auto group = llvm::find_if(groups, [&](auto &each) { return shares(each.front()->candidate, row->candidate); });
    if (group == groups.end())
      groups.push_back({row});
    else
      group->push_back(row);
  }
  ManyThreads threads(context());
  mlir::parallelFor(context(), 0, groups.size(), [&](size_t number) {
    const Candidate &candidate = groups[number].front()->candidate;
    OwningOpRef<ModuleOp> own = candidate.sidecar.empty() ? OwningOpRef<ModuleOp>() : withSidecar(candidate);
    Trials trials(own ? *own : candidate.microBatches > 1 ? programs.pieces : programs.whole);
    StagedTrials staged;
    for (Row *row : groups[number]) {
      Options options = row->candidate.options(space.options);
      if (withoutLimit)
        options.memory = 0;
      row->tried = true;
      if (Expected<Trial> trial = trials.run(options, staged); trial.ok())
        row->trial = std::move(*trial);
    }
  });
}

} // namespace hpc::search
