// A stage's first block and its last keep other values than those between where forward is computed again, so a difference is that of
// three blocks and two in one stage.
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

/// The share of a plan of one stage. Its seconds are the simulation's, which sees what overlaps and what ranks share.
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

static size_t firstUnit(ArrayRef<Operation *> block, const llvm::DenseMap<Operation *, size_t> &units, size_t all) {
  size_t first = all;
  for (Operation *op : block)
    if (auto unit = units.find(op); unit != units.end())
      first = std::min(first, unit->second);
  return first;
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
  SmallVector<int64_t> counts(chains.size(), 2);
  if (!chains.empty())
    addShort(raised, counts);
  for (int64_t count : {3, 4})
    for (int64_t &each : counts) {
      each = count;
      addShort(raised, counts);
      each = 2;
    }
}

void BlockProfiler::addShort(ModuleOp raised, ArrayRef<int64_t> counts) {
  Short &each = shorts.emplace_back();
  ShortenedModel model = shortened(raised, chains, counts);
  each.module = std::move(model.module);
  each.trials = std::make_unique<Trials>(*each.module);
  const auto [units, all] = unitsOf(each.module->lookupSymbol<func::FuncOp>("main"));
  each.units = all;
  for (const std::vector<SmallVector<Operation *>> &left : model.blocks)
    each.unitsBefore.push_back({firstUnit(left[left.size() - 2], units, all), firstUnit(left.back(), units, all)});
}

Expected<Trial> BlockProfiler::tryShort(const Short &model, const Options &options) {
  StagedTrials tries;
  return model.trials->run(options, tries);
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
  Expected<Trial> base = tryShort(shorts.front(), options);
  HPC_RETURN_IF_ERROR(base.status());
  BlockProfile profile;
  profile.after = shareOfOneStage(*base, options);
  for (size_t chain = 0; chain < chains.size(); ++chain) {
    Expected<Trial> longer = tryShort(shorts[1 + chain], options);
    HPC_RETURN_IF_ERROR(longer.status());
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
    const Short &model = shorts[1 + chains.size() + chain];
    const auto [third, fourth] = model.unitsBefore[chain];
    Expected<Trial> three = tryShort(model, withStages(options, {third, fourth - third, model.units - fourth})); // 2, 1 and 1 blocks
    HPC_RETURN_IF_ERROR(three.status());
    Expected<Trial> two = tryShort(model, withStages(options, {fourth, model.units - fourth})); // 3 and 1
    HPC_RETURN_IF_ERROR(two.status());
    BlockShare block = difference(shareOf(*two, 0), shareOf(*three, 0));
    block.temp = 0; // programs of one stage use the same memory
    profile.block.push_back(block);
    if (chain == 0) {
      profile.before = shareOf(*three, 0);
      profile.before.add(block, -2);
      profile.before.temp = two->memory[0].temp;
    }
    if (chain + 1 == chains.size())
      profile.after = difference(shareOf(*three, 2), block);
    profile.between = difference(shareOf(*three, 1), block);
    if (options.recompute != "none" && options.microBatches() == 1) // its one block keeps all; others compute values again, no more than that
      profile.between.temp += std::max<int64_t>(0, profile.between.kept);
    profile.crossing = std::max(profile.crossing, three->costs[0].sentBytes);
    profile.crossingSeconds = std::max(profile.crossingSeconds, three->costs[0].seconds.sending);
  }
  return profile;
}

} // namespace hpc
