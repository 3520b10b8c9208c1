// The same blocks in another number of stages: shares of blocks add up to parts, parts to stages, stages to a schedule.
#include "passes/Search/Estimate.h"

namespace hpc::search {

Candidate profiledCandidate(Candidate candidate) {
  candidate.pp = std::min<int64_t>(candidate.pp, 2);
  candidate.chunks = 1;
  if (candidate.schedule != "zb-h1")
    candidate.schedule.clear();
  return candidate;
}

bool standsFor(const Candidate &profiled, const Candidate &other) {
  auto fields = [](const Candidate &c) { return std::tie(c.dp, c.cp, c.tp, c.microBatches, c.zero, c.layout, c.cpMode); };
  return fields(profiled) == fields(other) && profiled.pp == std::min<int64_t>(other.pp, 2) && (profiled.schedule == "zb-h1") == (other.schedule == "zb-h1");
}

// ---- stages -------------------------------------------------------------------------------------

static std::vector<const BlockShare *> blocksOf(const BlockProfile &profile) {
  std::vector<const BlockShare *> blocks;
  for (auto [count, block] : llvm::zip_equal(profile.blocks, profile.block))
    blocks.insert(blocks.end(), size_t(count), &block);
  return blocks;
}

/// The ops before, between and after the blocks, dealt out to `parts` parts.
static std::vector<BlockShare> emptyParts(const BlockProfile &profile, size_t parts) {
  std::vector<BlockShare> filled(parts);
  filled.front().add(profile.before);
  filled.back().add(profile.after);
  for (size_t part = 1; part + 1 < parts; ++part)
    filled[part].add(profile.between);
  return filled;
}

/// The parts of a candidate with a split of its own.
static std::vector<BlockShare> givenParts(const BlockProfile &profile, size_t parts, StringRef split) {
  const std::vector<const BlockShare *> blocks = blocksOf(profile);
  std::vector<BlockShare> filled = emptyParts(profile, parts);
  size_t next = 0;
  for (auto [text, part] : llvm::zip_equal(llvm::to_vector(llvm::split(split, ',')), filled))
    for (int64_t count = std::stoll(text.str()); count > 0; --count)
      part.add(*blocks[next++]);
  return filled;
}

/// The parts of a model in their order, the largest of which takes as little as possible; the first parts take as few blocks as that allows.
static std::vector<BlockShare> evenParts(const BlockProfile &profile, size_t parts) {
  const std::vector<const BlockShare *> blocks = blocksOf(profile);
  auto fill = [&](double limit) {
    std::vector<BlockShare> filled = emptyParts(profile, parts);
    size_t left = blocks.size();
    for (size_t part = parts; part-- > 0;)
      while (left > 0 && (part == 0 || (filled[part].seconds.computing() + blocks[left - 1]->seconds.computing() <= limit && left > part)))
        filled[part].add(*blocks[--left]);
    return filled;
  };
  auto largest = [](const std::vector<BlockShare> &filled) {
    double most = 0;
    for (const BlockShare &part : filled)
      most = std::max(most, part.seconds.computing());
    return most;
  };
  double least = 0, most = largest(fill(0)); // all in the first
  for (int step = 0; step < 40; ++step) {
    const double middle = (least + most) / 2;
    (largest(fill(middle)) <= middle ? most : least) = middle;
  }
  return fill(most);
}

/// Micro-batches of which a stage keeps what forward leaves to backward, in copies of one chunk of it; all chunks.
static double copiesInFlight(const Candidate &candidate, int64_t stage) {
  const double most = double(candidate.microBatches * candidate.chunks);
  if (candidate.schedule == "gpipe")
    return most;
  const double behind = double(candidate.pp - stage);
  if (candidate.chunks == 1)
    return std::min(most, behind);
  return std::min(most, double((candidate.chunks - 1) * candidate.pp) + 2 * (behind - 1) + 1);
}

Estimate estimateOf(const Candidate &candidate, const BlockProfile &profile) {
  const double microBatches = double(candidate.microBatches), chunks = double(candidate.chunks);
  const size_t stages = size_t(candidate.pp);
  if (stages == 1) {
    const BlockShare whole = profile.whole();
    return {microBatches * whole.seconds.computing() + whole.seconds.update, whole.weight + whole.state + whole.step + whole.kept + whole.temp};
  }
  const size_t count = stages * size_t(candidate.chunks);
  const std::vector<BlockShare> parts = candidate.split.empty() ? evenParts(profile, count) : givenParts(profile, count, candidate.split);
  std::vector<BlockShare> byStage(stages);
  for (auto [number, part] : llvm::enumerate(parts))
    byStage[number % stages].add(part);
  double slowest = 0, others = 0, update = 0, all = 0;
  size_t slowestStage = 0;
  Estimate estimate;
  for (auto [number, stage] : llvm::enumerate(byStage)) {
    if (stage.seconds.computing() > slowest) {
      slowest = stage.seconds.computing();
      slowestStage = number;
    }
    update = std::max(update, stage.seconds.update);
    all += microBatches * stage.seconds.computing() + stage.seconds.update;
    const int64_t temp = stage.temp / candidate.chunks; // of one program
    estimate.memory = std::max(estimate.memory, stage.weight + stage.state + stage.step + temp +
                                                    int64_t(double(stage.kept) / chunks * copiesInFlight(candidate, int64_t(number))));
  }
  for (auto [number, stage] : llvm::enumerate(byStage))
    if (number != slowestStage)
      others += candidate.schedule == "zb-h1" ? std::max(0.0, stage.seconds.forward + stage.seconds.backward - stage.seconds.weightGradient) : stage.seconds.computing() / chunks;
  const double ways = profile.block.front().seconds.backward > 0 ? 2 : 1;
  const double messages = ways * double(stages - 1) * profile.crossingSeconds;
  estimate.seconds = microBatches * std::max(slowest, chunks * profile.crossingSeconds) + others + messages + update;
  estimate.idle = 1 - all / (double(stages) * estimate.seconds);
  return estimate;
}

Estimate estimateAuto(const Estimate &all, const Estimate &none, int64_t limit) {
  if (limit == 0 || all.memory <= limit)
    return all;
  if (none.memory >= all.memory || none.memory > limit)
    return none;
  const double share = double(all.memory - limit) / double(all.memory - none.memory);
  return {all.seconds + share * std::max(0.0, none.seconds - all.seconds), limit};
}

// ---- bounds -------------------------------------------------------------------------------------

/// How much is computed again: no candidate with more of it is faster, none with less of it smaller. As little as nothing with auto.
static int amountOf(StringRef recompute) { return recompute == "full" ? 2 : recompute == "attention" ? 1 : 0; }

Estimate boundBy(const Profiled &profiled, const Candidate &candidate, const Work &work, int64_t batch) {
  const Candidate &from = profiled.candidate;
  Estimate bound;
  // Only what the other one has no more of.
  if (candidate.tp % from.tp || candidate.cp % from.cp || (from.tp > 1 && from.layout != candidate.layout) || (from.cp > 1 && from.cpMode != candidate.cpMode) ||
      (from.zero > 1 && from.zero != candidate.zero))
    return bound;
  const double ranks = double(candidate.tp * candidate.cp) / double(from.tp * from.cp);
  const double rows = double(batch) / double(candidate.dp * candidate.microBatches), rowsThere = double(batch) / double(from.dp * from.microBatches);
  const double share = rows / rowsThere / ranks;
  if (amountOf(from.recompute) <= amountOf(candidate.recompute) && rows <= rowsThere && from.pp <= candidate.pp) {
    const double whole = profiled.whole.seconds.computing() * share, stage = whole / double(candidate.pp);
    const double bubble = candidate.schedule == "zb-h1" ? (whole - stage) / 3 : (whole - stage) / double(candidate.chunks);
    bound.seconds = double(candidate.microBatches) * stage + std::max(0.0, bubble);
  }
  if (amountOf(from.recompute) >= amountOf(candidate.recompute) && from.pp > 1 && candidate.pp > 1 && candidate.recompute != "auto") {
    const double ofStage = double(profiled.whole.kept) / double(candidate.pp * candidate.chunks);
    bound.memory = leastMemory(candidate, work) + int64_t(ofStage * share * copiesInFlight(candidate, 0));
  }
  if (amountOf(from.recompute) >= amountOf(candidate.recompute) && from.pp == 1 && candidate.pp == 1 && candidate.recompute != "auto" && (from.microBatches > 1) == (candidate.microBatches > 1))
    bound.memory = leastMemory(candidate, work) + int64_t(double(profiled.whole.kept) * share);
  return bound;
}

} // namespace hpc::search
