// A batch is shared out to threads by what its rows have in common; results are taken in the order of the batch.
#include "passes/Search/CandidateTable.h"

#include "mlir/IR/Threading.h"

namespace hpc::search {

CandidateTable::CandidateTable(ModuleOp raised, ModuleOp whole, ModuleOp pieces, Space given)
    : space(std::move(given)), machine(machineOf(space.options)), work(workOf(whole, machine)), whole(whole), pieces(pieces), profiler(raised, space.options) {
  space.blocks = 0;
  for (const BlockChain &chain : profiler.found())
    space.blocks = std::max(space.blocks, int64_t(chain.size()));
}

void CandidateTable::addRows() {
  for (Candidate &candidate : candidatesOf(space)) {
    Row row;
    row.bound = {leastSeconds(candidate, work, machine), leastMemory(candidate, work)};
    row.candidate = std::move(candidate);
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

const Profiled *CandidateTable::profileOf(const Candidate &candidate) const {
  auto found = llvm::find_if(profiles, [&](const Profiled &each) { return each.isOf(candidate); });
  return found == profiles.end() ? nullptr : &*found;
}

void CandidateTable::estimate(Row &row) const {
  const Candidate &candidate = row.candidate;
  if (candidate.recompute != "auto") {
    if (const Profiled *own = profileOf(candidate))
      row.estimate = estimateOf(candidate, own->profile);
    return;
  }
  const Profiled *all = profileOf(recomputing(candidate, "none")), *none = profileOf(recomputing(candidate, "full"));
  if (all && none)
    row.estimate = estimateAuto(estimateOf(candidate, all->profile), estimateOf(candidate, none->profile), space.options.memory);
}

void CandidateTable::learn(const Profiled &profiled) {
  for (Row &row : rows) {
    const Estimate more = boundBy(profiled, row.candidate, work, space.batch);
    row.bound = {std::max(row.bound.seconds, more.seconds), std::max(row.bound.memory, more.memory)};
  }
}

size_t CandidateTable::profile(ArrayRef<Row *> batch) {
  // 1. What is missing, each once.
  std::vector<Candidate> missing;
  auto same = [](const Candidate &candidate) { return [&candidate](const Candidate &other) { return other.flags() == candidate.flags(); }; };
  for (Row *row : batch)
    for (const Candidate &candidate : profilesFor(row->candidate))
      if (!profileOf(candidate) && llvm::none_of(missing, same(candidate)) && llvm::none_of(unprofiled, same(candidate)))
        missing.push_back(candidate);
  // 2. Profiles.
  std::vector<std::optional<BlockProfile>> found(missing.size());
  {
    ManyThreads threads(whole.getContext());
    mlir::parallelFor(whole.getContext(), 0, missing.size(), [&](size_t number) {
      Options options = missing[number].options(space.options);
      options.memory = 0;
      if (Expected<BlockProfile> profile = profiler.profile(options); profile.ok())
        found[number] = std::move(*profile);
    });
  }
  // 3. Everybody learns from them.
  for (auto [candidate, profile] : llvm::zip_equal(missing, found)) {
    if (!profile) {
      unprofiled.push_back(candidate);
      continue;
    }
    const BlockShare all = profile->whole();
    profiles.push_back({candidate, std::move(*profile), all});
    learn(profiles.back());
  }
  for (Row &row : rows)
    if (!row.profiled) {
      estimate(row);
      row.profiled = row.estimate || llvm::any_of(profilesFor(row.candidate), [&](const Candidate &each) { return llvm::any_of(unprofiled, same(each)); });
    }
  return missing.size();
}

// ---- compilations -------------------------------------------------------------------------------

/// Candidates that share their program up to phase partition follow each other in one thread, which keeps it no longer.
void CandidateTable::compile(ArrayRef<Row *> batch, bool withoutLimit) {
  auto shares = [](const Candidate &a, const Candidate &b) {
    return std::tie(a.dp, a.cp, a.tp, a.layout, a.cpMode, a.microBatches, a.zero) == std::tie(b.dp, b.cp, b.tp, b.layout, b.cpMode, b.microBatches, b.zero);
  };
  SmallVector<SmallVector<Row *>> groups;
  for (Row *row : batch) {
    auto group = llvm::find_if(groups, [&](auto &each) { return shares(each.front()->candidate, row->candidate); });
    if (group == groups.end())
      groups.push_back({row});
    else
      group->push_back(row);
  }
  ManyThreads threads(whole.getContext());
  mlir::parallelFor(whole.getContext(), 0, groups.size(), [&](size_t number) {
    Trials trials(groups[number].front()->candidate.microBatches > 1 ? pieces : whole);
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
