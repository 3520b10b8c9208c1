// Stages are sums of blocks; a step is what the slowest stage takes for all micro-batches, and what the others take for one.
#include "passes/Driver/ProfileEstimate.h"

#include "passes/Stage/Blocks.h"
#include "runtime/plan/ScheduleKinds.h"
#include "runtime/plan/ScheduleSlots.h"

namespace hpc {

static int64_t lastingOf(const BlockShare &share) { return share.weight + share.state + share.step; }

static ProfileEstimate ofOneStage(const BlockProfile &profile, const Options &options) {
  const BlockShare whole = profile.whole();
  return {{lastingOf(whole) + whole.kept + whole.temp}, double(options.microBatches()) * whole.seconds.computing() + whole.seconds.update, lastingOf(whole)};
}

Expected<std::vector<int64_t>> keptCopiesOf(const Options &options) {
  Expected<plan::ScheduleKind> kind = !options.ppSchedule.empty() ? plan::parseScheduleKind(options.ppSchedule)
                                      : !options.trains()         ? plan::ScheduleKind::Inference
                                      : options.ppChunks > 1      ? plan::ScheduleKind::Interleaved
                                                                  : plan::ScheduleKind::OneForwardOneBackward;
  HPC_RETURN_IF_ERROR(kind.status());
  Expected<plan::PipelineSchedule> schedule = plan::makeSchedule(*kind, options.stages(), options.ppChunks, options.microBatches());
  HPC_RETURN_IF_ERROR(schedule.status());
  return plan::keptCopies(*schedule, options.ppChunks);
}

static Expected<ProfileEstimate> ofPipeline(const BlockProfile &profile, ArrayRef<double> units, const Options &options) {
  const size_t stages = size_t(options.stages()), parts = stages * size_t(options.ppChunks);
  if (options.ppSplit != "balanced")
    return Status::error(ErrorKind::Usage, "a profile has no --pp-split");
  if (units.size() < parts)
    return Status::error(ErrorKind::Usage, "the profile has " + std::to_string(units.size()) + " blocks for " + std::to_string(parts) + " parts of a pipeline");
  Expected<std::vector<int64_t>> copies = keptCopiesOf(options);
  HPC_RETURN_IF_ERROR(copies.status());
  std::vector<const BlockShare *> blocks;
  for (auto [count, block] : llvm::zip_equal(profile.blocks, profile.block))
    blocks.insert(blocks.end(), size_t(count), &block);
  const std::vector<size_t> counts = balancedSplit(units, parts);
  std::vector<BlockShare> all(stages);
  ProfileEstimate estimate{std::vector<int64_t>(stages, 0)};
  for (size_t part = 0, block = 0; part < parts; block += counts[part++]) {
    BlockShare share;
    for (size_t i = block; i < block + counts[part]; ++i)
      share.add(*blocks[i]);
    share.add(part == 0 ? profile.before : part + 1 == parts ? profile.after : profile.between);
    all[part % stages].add(share);
    estimate.memory[part % stages] += lastingOf(share) + (*copies)[part] * share.kept;
  }
  double slowest = 0, sum = 0;
  for (size_t stage = 0; stage < stages; ++stage) {
    estimate.memory[stage] += std::max<int64_t>(0, all[stage].temp / options.ppChunks); // programs use the same memory beside what they keep
    estimate.lasting = std::max(estimate.lasting, lastingOf(all[stage]));
    slowest = std::max(slowest, all[stage].seconds.computing());
    sum += all[stage].seconds.computing();
  }
  // The first stage ends last; the update of another one begins as many backward programs earlier.
  double end = double(options.microBatches()) * std::max(slowest, profile.crossingSeconds) + (sum - slowest) / double(options.ppChunks) +
               (options.trains() ? 2 : 1) * double(stages - 1) * profile.crossingSeconds;
  for (const BlockShare &stage : all) {
    estimate.seconds = std::max(estimate.seconds, end + stage.seconds.update);
    end -= stage.seconds.backward + stage.seconds.weightGradient;
  }
  return estimate;
}

static Expected<ProfileEstimate> estimateKeeping(BlockProfiler &profiler, const Options &options) {
  Expected<BlockProfile> profile = profiler.profile(options);
  HPC_RETURN_IF_ERROR(profile.status());
  return options.stages() == 1 ? ofOneStage(*profile, options) : ofPipeline(*profile, profiler.unitCosts(), options);
}

Expected<ProfileEstimate> estimateByProfile(BlockProfiler &profiler, const Options &given) {
  Options options = given;
  options.budgets.clear();
  Expected<ProfileEstimate> all = estimateKeeping(profiler, options);
  if (!all.ok() || options.recompute != "auto" || all->peak() <= options.memory)
    return all;
  options.budgets = {0};
  Expected<ProfileEstimate> least = estimateKeeping(profiler, options);
  HPC_RETURN_IF_ERROR(least.status());
  double share = 0; // of what may be computed again, in the stage that has the least room
  for (auto [most, few] : llvm::zip_equal(all->memory, least->memory)) {
    if (few >= options.memory)
      return least;
    if (most > options.memory)
      share = std::max(share, double(most - options.memory) / double(most - few));
    most = std::min(most, options.memory);
  }
  all->seconds += share * std::max(0.0, least->seconds - all->seconds);
  return all;
}

} // namespace hpc
