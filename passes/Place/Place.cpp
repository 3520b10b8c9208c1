// Arenas: what lives longer than a program is packed, temporaries share what is left.
#include "passes/Place/Place.h"

#include "passes/Place/Temporaries.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/PlanCheck.h"

#include <algorithm>

namespace hpc {

using plan::Buffer;
using plan::Lifetime;

/// Packs all buffers of an arena that live longer than a program one after the other, the longest-lived first; returns
/// the end.
static int64_t pack(plan::Stage &stage, plan::ArenaKind arena) {
  int64_t end = 0;
  for (Lifetime lifetime : {Lifetime::Session, Lifetime::Step, Lifetime::MicroBatch})
    for (Buffer &buffer : stage.buffers) {
      if (buffer.lifetime != lifetime || arenaOf(buffer) != arena)
        continue;
      buffer.offset = end;
      buffer.slotStride = buffer.slots > 1 ? alignUp(buffer.bytes) : 0;
      end += alignUp(buffer.bytes) * buffer.slots;
    }
  return end;
}

/// The peak of a stage by classes with its largest buffers, against the limit.
static Status checkCapacity(const plan::Stage &stage, const plan::MemoryFacts &facts, size_t index, int64_t limit) {
  if (limit == 0 || facts.total() <= limit)
    return Status::success();
  std::vector<const Buffer *> largest;
  for (const Buffer &buffer : stage.buffers)
    largest.push_back(&buffer);
  std::sort(largest.begin(), largest.end(), [](const Buffer *a, const Buffer *b) {
    return std::make_pair(-a->bytes, a) < std::make_pair(-b->bytes, b); // pointers into one vector: by number
  });
  std::string names;
  for (size_t i = 0; i < largest.size() && i < 3; ++i)
    names += (i ? ", " : "") + (largest[i]->name.empty() ? "a temporary" : largest[i]->name) + " (" +
             countText(largest[i]->bytes, "byte") + ")";
  auto part = [](const char *what, int64_t bytes) { return std::string(what) + " " + std::to_string(bytes); };
  return Status::error(ErrorKind::Capacity,
                       "a rank of stage " + std::to_string(index) + " needs " + countText(facts.total(), "byte") + " (" +
                           part("weights", facts.weight) + ", " + part("states", facts.state) + ", " +
                           part("accumulators", facts.step) + ", " + part("activations of micro-batches in flight", facts.slot) +
                           ", " + part("buffers", facts.temp) + "), --memory allows " + std::to_string(limit) +
                           "; its largest buffers are " + names);
}

Status placeBuffers(plan::Plan &plan, const PlaceOptions &options) {
  for (size_t index = 0; index < plan.stages.size(); ++index) {
    plan::Stage &stage = plan.stages[index];
    stage.sessionBytes = pack(stage, plan::ArenaKind::Session);
    stage.hostBytes = pack(stage, plan::ArenaKind::Host);
    int64_t longer = pack(stage, plan::ArenaKind::Work);
    stage.workBytes = longer;
    for (Buffer &buffer : stage.buffers)
      if (buffer.lifetime == Lifetime::Program)
        buffer.offset = longer; // of no bytes, or of no use
    for (size_t program = 0; program < stage.programs.size(); ++program) {
      Expected<std::vector<plan::LiveRange>> ranges = plan::liveRanges(plan, int64_t(index), int64_t(program));
      if (!ranges.ok())
        return ranges.status();
      stage.workBytes = std::max(stage.workBytes, placeTemporaries(stage, *ranges, longer));
    }
  }
  return checkPeak(plan, options.memory);
}

Status checkPeak(const plan::Plan &plan, int64_t memory) {
  if (memory == 0)
    return Status::success();
  plan::PlanFacts facts = plan::staticFacts(plan);
  for (size_t index = 0; index < plan.stages.size(); ++index)
    HPC_RETURN_IF_ERROR(checkCapacity(plan.stages[index], facts.memory[index], index, memory));
  return Status::success();
}

Status checkUnplaced(plan::Plan plan) {
  HPC_RETURN_IF_ERROR(placeBuffers(plan));
  return plan::checkPlan(plan);
}

} // namespace hpc
