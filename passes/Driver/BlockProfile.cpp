// Two blocks are the least: the first and the last differ in what is beside them. A pipeline's profile comes from three blocks, in
// three stages and in two.
#include "passes/Driver/BlockProfile.h"

#include "compiler/Sidecar/ModuleSidecar.h"
#include "passes/Stage/Blocks.h"

namespace hpc {

/// A model with fewer blocks is compiled as fast as one with three.
constexpr int64_t leastBlocks = 4;

constexpr double cost::StageSeconds::*secondsOfShares[] = {&cost::StageSeconds::forward, &cost::StageSeconds::backward, &cost::StageSeconds::weightGradient,
                                                           &cost::StageSeconds::sending, &cost::StageSeconds::update};

void BlockShare::add(const BlockShare &other, int64_t times) {
  for (double cost::StageSeconds::*part : secondsOfShares)
    seconds.*part += double(times) * (other.seconds.*part);
  for (int64_t BlockShare::*part : {&BlockShare::weight, &BlockShare::state, &BlockShare::step, &BlockShare::kept, &BlockShare::temp})
    this->*part += times * (other.*part);
}

BlockShare BlockProfile::whole() const {
  BlockShare all = before;
  all.add(after);
  for (auto [count, each] : llvm::zip_equal(blocks, block))
    all.add(each, count);
  return all;
}

static BlockShare shareOf(const Trial &trial, size_t stage) {
  const plan::MemoryFacts &memory = trial.memory[stage];
  BlockShare share;
  share.seconds = trial.costs[stage].seconds;
  share.weight = memory.weight;
  share.state = memory.state;
  share.step = memory.step;
  share.kept = trial.costs[stage].microBatchBytes;
  share.temp = memory.temp;
  return share;
}

/// Of a plan of one stage. Its seconds are the simulation's, which sees what overlaps and what ranks share.
static BlockShare shareOfOneStage(const Trial &trial, const Options &options) {
  BlockShare share = shareOf(trial, 0);
  const double sum = double(options.microBatches()) * share.seconds.computing() + share.seconds.update;
  for (double cost::StageSeconds::*part : secondsOfShares)
    share.seconds.*part *= sum > 0 ? trial.seconds / sum : 0;
  return share;
}

static BlockShare difference(BlockShare more, const BlockShare &fewer) {
  more.add(fewer, -1);
  return more;
}

// ---- models with few blocks ---------------------------------------------------------------------

/// The number of units of a pipeline before each op's own, and of all.
static std::pair<llvm::DenseMap<Operation *, size_t>, size_t> unitsOf(func::FuncOp function) {
  const Blocks blocks = findBlocks(function, 2);
  llvm::DenseMap<Operation *, size_t> units;
  for (size_t unit = 0; unit < blocks.size(); ++unit)
    for (size_t op = blocks.firstOp[unit]; op < blocks.endOp(unit); ++op)
      units[blocks.trunk.ops[op]] = unit;
  return {std::move(units), blocks.size()};
}

BlockProfiler::BlockProfiler(ModuleOp raised, const Options &options) : chains(findRepeatedBlocks(raised, options)) {
  llvm::erase_if(chains, [](const BlockChain &chain) { return int64_t(chain.size()) < leastBlocks; });
  size_t blocks = 0;
  for (const BlockChain &chain : chains)
    blocks += chain.size();
  if (!chains.empty())
    units = findBlocks(raised.lookupSymbol<func::FuncOp>("main"), 2).cost;
  Expected<std::optional<Sidecar>> sidecar = sidecarOf(raised);
  if (units.size() != blocks || !sidecar.ok() || (*sidecar && !(*sidecar)->stages.empty()))
    units.clear();
  for (size_t made = 0; !chains.empty() && made <= chains.size(); ++made) {
    SmallVector<int64_t> counts(chains.size(), 2);
    if (made > 0)
      counts[made - 1] = 3;
    Short &each = shorts.emplace_back();
    ShortenedModel model = shortened(raised, chains, counts);
    each.module = std::move(model.module);
    each.trials = std::make_unique<Trials>(*each.module);
    const auto found = unitsOf(each.module->lookupSymbol<func::FuncOp>("main"));
    const llvm::DenseMap<Operation *, size_t> &units = found.first;
    each.units = found.second;
    auto unitsBefore = [&](ArrayRef<Operation *> block) {
      size_t first = found.second;
      for (Operation *op : block)
        if (auto unit = units.find(op); unit != units.end())
          first = std::min(first, unit->second);
      return first;
    };
    for (const std::vector<SmallVector<Operation *>> &left : model.blocks)
      each.unitsBefore.push_back({unitsBefore(left[left.size() - 2]), unitsBefore(left.back())});
  }
}

Expected<Trial> BlockProfiler::tryShort(ArrayRef<int64_t> counts, const Options &options) {
  std::optional<size_t> longer;
  for (auto [chain, count] : llvm::enumerate(counts))
    if (count == 3)
      longer = chain;
  StagedTrials tries;
  return shortOf(longer).trials->run(options, tries);
}

// ---- profiles -----------------------------------------------------------------------------------

Expected<BlockProfile> BlockProfiler::profile(const Options &options) {
  Options given = options;
  given.memory = 0; // what is chosen for a memory is chosen for the whole
  if (options.recompute == "auto" && options.budgets.empty())
    given.budgets = {std::numeric_limits<int64_t>::max()};
  Expected<BlockProfile> profile = options.stages() > 1 ? ofPipeline(given) : ofOneStage(given);
  if (profile.ok())
    for (const BlockChain &chain : chains)
      profile->blocks.push_back(int64_t(chain.size()));
  return profile;
}

Expected<BlockProfile> BlockProfiler::ofOneStage(const Options &options) {
  SmallVector<int64_t> counts(chains.size(), 2);
  Expected<Trial> base = tryShort(counts, options);
  HPC_RETURN_IF_ERROR(base.status());
  BlockProfile profile;
  profile.after = shareOfOneStage(*base, options);
  for (size_t chain = 0; chain < chains.size(); ++chain) {
    counts[chain] = 3;
    Expected<Trial> longer = tryShort(counts, options);
    HPC_RETURN_IF_ERROR(longer.status());
    counts[chain] = 2;
    profile.block.push_back(difference(shareOfOneStage(*longer, options), shareOfOneStage(*base, options)));
    profile.after.add(profile.block.back(), -2);
  }
  return profile;
}

/// Stages with so many units each.
static Options withStages(Options options, ArrayRef<size_t> units) {
  for (dist::Mesh::Axis &axis : options.degrees.axes)
    if (axis.role == dist::AxisRole::Pipeline)
      axis.size = int64_t(units.size());
  options.ppChunks = 1;
  if (options.ppSchedule == "interleaved")
    options.ppSchedule = "";
  if (!options.budgets.empty())
    options.budgets.assign(units.size(), options.budgets.front());
  options.ppSplit.clear();
  for (size_t count : units)
    options.ppSplit += (options.ppSplit.empty() ? "" : ",") + std::to_string(count);
  return options;
}

Expected<BlockProfile> BlockProfiler::ofPipeline(const Options &options) {
  BlockProfile profile;
  for (size_t chain = 0; chain < chains.size(); ++chain) {
    SmallVector<int64_t> counts(chains.size(), 2);
    counts[chain] = 3;
    const Short &model = shortOf(chain);
    const auto [second, third] = model.unitsBefore[chain];
    Expected<Trial> three = tryShort(counts, withStages(options, {second, third - second, model.units - third}));
    HPC_RETURN_IF_ERROR(three.status());
    Expected<Trial> two = tryShort(counts, withStages(options, {third, model.units - third}));
    HPC_RETURN_IF_ERROR(two.status());
    // A program's own memory does not add up over blocks: it is that of two blocks, where the second one computes forward's values again.
    BlockShare block = difference(shareOf(*two, 0), shareOf(*three, 0));
    block.temp = -std::max<int64_t>(0, block.temp);
    if (chain == 0)
      profile.before = difference(shareOf(*three, 0), block);
    if (chain + 1 == chains.size())
      profile.after = difference(shareOf(*three, 2), block);
    profile.between = difference(shareOf(*three, 1), block);
    block.temp = 0;
    profile.block.push_back(block);
    profile.crossing = std::max(profile.crossing, three->costs[0].sentBytes);
    profile.crossingSeconds = std::max(profile.crossingSeconds, three->costs[0].seconds.sending);
  }
  return profile;
}

} // namespace hpc
