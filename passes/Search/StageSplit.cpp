#include "passes/Search/StageSplit.h"

#include "passes/Driver/ProfileEstimate.h"

namespace hpc::search {

static StageProblem::Block blockOf(const BlockShare &share) {
  return {share.seconds.computing(), std::max<int64_t>(0, share.weight + share.state + share.step), std::max<int64_t>(0, share.kept)};
}

Expected<StageProblem> stageProblemOf(const BlockProfile &profile, const Options &options) {
  StageProblem problem;
  problem.stages = options.stages();
  problem.chunks = options.ppChunks;
  Expected<std::vector<int64_t>> copies = keptCopiesOf(options);
  HPC_RETURN_IF_ERROR(copies.status());
  problem.inFlight = std::move(*copies);
  std::vector<BlockShare> shares;
  for (auto [count, block] : llvm::zip_equal(profile.blocks, profile.block))
    shares.insert(shares.end(), size_t(count), block);
  shares.front().add(profile.before);
  shares.back().add(profile.after);
  for (const BlockShare &share : shares)
    problem.blocks.push_back(blockOf(share));
  problem.temporaries = std::max({int64_t(0), profile.before.temp, profile.after.temp});
  if (options.memory)
    problem.memory = options.memory;
  return problem;
}

std::string splitText(const StageProblem::Solution &solution) {
  std::string text;
  for (int64_t count : solution.counts)
    text += (text.empty() ? "" : ",") + std::to_string(count);
  return text;
}

} // namespace hpc::search
