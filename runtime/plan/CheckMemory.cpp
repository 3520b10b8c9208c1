// Memory: what lives at once lies apart. Weight, State and Slot buffers live all the time; Temp buffers by liveRanges.
// Sweeps keep the live buffers in a map by address, so that only neighbours need comparing.
#include "runtime/plan/Access.h"
#include "runtime/plan/Liveness.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace hpc::plan {

namespace {

Status fault(const std::string &message) { return Status::error(ErrorKind::Plan, message); }

/// Bytes begin..end-1 of an arena.
struct Span {
  int64_t begin = 0, end = 0;
  int32_t buffer = -1;
  int64_t slot = 0;
};

std::string spanText(const Stage &stage, const Span &span) {
  std::string text = bufferText(stage, span.buffer);
  if (stage.buffers[span.buffer].slots > 1)
    text += " (slot " + std::to_string(span.slot) + ")";
  return text + " at bytes " + std::to_string(span.begin) + ".." + std::to_string(span.end - 1);
}

/// All copies of all buffers of a class, by address.
std::vector<Span> spansOf(const Stage &stage, MemoryClass memory) {
  std::vector<Span> spans;
  for (size_t i = 0; i < stage.buffers.size(); ++i) {
    const Buffer &buffer = stage.buffers[i];
    if (buffer.memory != memory || buffer.bytes == 0)
      continue;
    for (int64_t slot = 0; slot < buffer.slots; ++slot) {
      int64_t begin = buffer.offset + slot * buffer.slotStride;
      spans.push_back({begin, begin + buffer.bytes, int32_t(i), slot});
    }
  }
  std::sort(spans.begin(), spans.end(), [](const Span &a, const Span &b) {
    return std::tie(a.begin, a.buffer, a.slot) < std::tie(b.begin, b.buffer, b.slot);
  });
  return spans;
}

bool sameValues(const std::vector<ByCoord> &a, const std::vector<ByCoord> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ByCoord &x, const ByCoord &y) { return x.values == y.values; });
}

/// Two weight buffers that hold the same part of the same tensor may be one piece of memory.
bool sameContent(const WeightBinding *a, const WeightBinding *b) {
  return a && b && a->tensor == b->tensor && a->slice.view == b->slice.view &&
         a->slice.permutation == b->slice.permutation && a->slice.box == b->slice.box &&
         sameValues(a->slice.start, b->slice.start) && sameValues(a->slice.extent, b->slice.extent);
}

Status checkApart(const Stage &stage, MemoryClass memory, const std::vector<const WeightBinding *> &bindings) {
  std::vector<Span> spans = spansOf(stage, memory);
  const Span *last = nullptr; // the one that reaches furthest
  for (const Span &span : spans) {
    bool overlap = last && span.begin < last->end;
    bool shared = overlap && span.begin == last->begin && span.end == last->end &&
                  sameContent(bindings[span.buffer], bindings[last->buffer]);
    if (overlap && !shared)
      return fault(spanText(stage, *last) + " and " + spanText(stage, span) + " overlap in the " + name(memory) +
                   " memory, where both live all the time; place them apart");
    if (!last || span.end > last->end)
      last = &span;
  }
  return Status::success();
}

/// Every Weight buffer has one binding. Returns them by buffer.
Status bindWeights(const Stage &stage, std::vector<const WeightBinding *> &bindings) {
  bindings.assign(stage.buffers.size(), nullptr);
  for (const WeightBinding &binding : stage.weights) {
    if (bindings[binding.buffer])
      return fault(bufferText(stage, binding.buffer) + " is bound to a weight twice; one binding must go");
    bindings[binding.buffer] = &binding;
  }
  for (size_t i = 0; i < stage.buffers.size(); ++i)
    if (stage.buffers[i].memory == MemoryClass::Weight && !bindings[i])
      return fault(bufferText(stage, int64_t(i)) + " is of class weight, but no weight is bound to it");
  return Status::success();
}

/// The live Temp buffers of one moment.
class LiveSet {
public:
  LiveSet(const Stage &stage, const std::vector<Span> &always) : stage(stage), always(always) {}

  /// The live span that `span` meets, or null.
  const Span *conflict(const Span &span) const {
    auto next = live.lower_bound(span.begin);
    if (next != live.end() && next->second.begin < span.end)
      return &next->second;
    if (next != live.begin() && std::prev(next)->second.end > span.begin)
      return &std::prev(next)->second;
    auto slot = std::upper_bound(always.begin(), always.end(), span.begin,
                                 [](int64_t begin, const Span &other) { return begin < other.begin; });
    if (slot != always.end() && slot->begin < span.end)
      return &*slot;
    if (slot != always.begin() && std::prev(slot)->end > span.begin)
      return &*std::prev(slot);
    return nullptr;
  }
  void insert(const Span &span) { live[span.begin] = span; }
  void remove(int32_t buffer) {
    auto found = live.find(stage.buffers[buffer].offset);
    if (found != live.end() && found->second.buffer == buffer)
      live.erase(found);
  }

private:
  const Stage &stage;
  const std::vector<Span> &always; ///< disjoint, sorted
  std::map<int64_t, Span> live;    ///< disjoint, by begin
};

/// An all-reduce may put its result where its operand ends to live: "the same place" in Plan.h.
bool isInPlaceReduce(const Instruction &instruction, const Span &src, const Span &dst) {
  const auto *collective = std::get_if<Collective>(&instruction.action);
  return collective && collective->kind == CollectiveKind::AllReduce && collective->src.buffer == src.buffer &&
         collective->dst.buffer == dst.buffer && src.begin == dst.begin && src.end == dst.end &&
         collective->src.byteOffset == collective->dst.byteOffset;
}

Status checkTemps(const Plan &plan, int64_t stageIndex, int64_t programIndex, const std::vector<Span> &slots) {
  const Stage &stage = plan.stages[stageIndex];
  Expected<std::vector<LiveRange>> ranges = liveRanges(plan, stageIndex, programIndex);
  if (!ranges.ok())
    return ranges.status();
  LiveSet live(stage, slots);
  std::multimap<int32_t, int32_t> ends; // last instruction -> buffer
  std::map<int32_t, int32_t> lasts;     // buffer -> last instruction
  for (const LiveRange &range : *ranges) {
    while (!ends.empty() && ends.begin()->first < range.first) {
      live.remove(ends.begin()->second);
      ends.erase(ends.begin());
    }
    const Buffer &buffer = stage.buffers[range.buffer];
    Span span{buffer.offset, buffer.offset + buffer.bytes, range.buffer, 0};
    if (const Span *other = live.conflict(span)) {
      bool isTemp = stage.buffers[other->buffer].memory == MemoryClass::Temp;
      const Instruction &first = stage.programs[programIndex].instructions[range.first];
      if (!isTemp || lasts[other->buffer] != range.first || !isInPlaceReduce(first, *other, span)) {
        std::string until =
            isTemp ? "in use until instruction " + std::to_string(lasts[other->buffer]) : "in use all the time";
        return fault(instructionText(plan, stageIndex, programIndex, range.first) + ": begins to use " +
                     spanText(stage, span) + ", but " + spanText(stage, *other) + " is " + until +
                     "; place them apart");
      }
      live.remove(other->buffer);
    }
    live.insert(span);
    ends.emplace(range.last, range.buffer);
    lasts[range.buffer] = range.last;
  }
  return Status::success();
}

Status checkNoWeightWritten(const Plan &plan, int64_t stageIndex, int64_t programIndex) {
  const Stage &stage = plan.stages[stageIndex];
  const std::vector<Instruction> &instructions = stage.programs[programIndex].instructions;
  for (size_t i = 0; i < instructions.size(); ++i)
    for (const Access &access : accessesOf(plan, instructions[i]))
      if (access.write && stage.buffers[access.ref.buffer].memory == MemoryClass::Weight)
        return fault(instructionText(plan, stageIndex, programIndex, int64_t(i)) + ": writes to " +
                     bufferText(stage, access.ref.buffer) + ", a weight; weights are only read");
  return Status::success();
}

} // namespace

Status checkMemory(const Plan &plan) {
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage &stage = plan.stages[s];
    std::string where = "stage " + std::to_string(s);
    std::vector<const WeightBinding *> bindings;
    HPC_RETURN_IF_ERROR(bindWeights(stage, bindings).at(where));
    for (MemoryClass memory : {MemoryClass::Weight, MemoryClass::State, MemoryClass::Slot})
      HPC_RETURN_IF_ERROR(checkApart(stage, memory, bindings).at(where));
    std::vector<Span> slots = spansOf(stage, MemoryClass::Slot);
    for (size_t p = 0; p < stage.programs.size(); ++p) {
      HPC_RETURN_IF_ERROR(checkNoWeightWritten(plan, int64_t(s), int64_t(p)));
      HPC_RETURN_IF_ERROR(checkTemps(plan, int64_t(s), int64_t(p), slots));
    }
  }
  return Status::success();
}

} // namespace hpc::plan
