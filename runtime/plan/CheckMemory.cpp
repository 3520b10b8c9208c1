// Memory: what lives at once lies apart. Buffers that live longer than a program live all the time here; those of one
// program by liveRanges. Sweeps keep the live buffers in a map by address, so that only neighbours need comparing.
#include "runtime/plan/Access.h"
#include "runtime/plan/Liveness.h"
#include "runtime/plan/Packing.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFault.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace hpc::plan {

namespace {

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

/// All copies of all buffers of an arena that live longer than a program, by address.
std::vector<Span> spansOf(const Stage &stage, ArenaKind arena) {
  std::vector<Span> spans;
  for (size_t i = 0; i < stage.buffers.size(); ++i) {
    const Buffer &buffer = stage.buffers[i];
    if (arenaOf(buffer) != arena || buffer.lifetime == Lifetime::Program || buffer.bytes == 0)
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

/// Facts about a Session buffer for the checks.
struct SessionUse {
  const Binding *binding = nullptr;
  bool isWritten = false; ///< by some program
};

/// Two buffers that hold the same part of the same stored tensor for ever may be one piece of memory.
bool sameContent(const SessionUse &one, const SessionUse &other) {
  if (!one.binding || !other.binding || one.isWritten || other.isWritten)
    return false;
  const Binding &a = *one.binding, &b = *other.binding;
  const auto *x = std::get_if<StoredWeight>(&a.start), *y = std::get_if<StoredWeight>(&b.start);
  return x && y && x->weight == y->weight && a.slice.view == b.slice.view && a.slice.box == b.slice.box &&
         sameValues(a.slice.start, b.slice.start) && sameValues(a.slice.extent, b.slice.extent);
}

Status checkApart(const Stage &stage, ArenaKind arena, const std::vector<SessionUse> &uses) {
  std::vector<Span> spans = spansOf(stage, arena);
  const Span *last = nullptr; // the one that reaches furthest
  for (const Span &span : spans) {
    bool overlap = last && span.begin < last->end;
    bool shared = overlap && span.begin == last->begin && span.end == last->end &&
                  sameContent(uses[span.buffer], uses[last->buffer]);
    if (overlap && !shared)
      return fault(spanText(stage, *last) + " and " + spanText(stage, span) + " overlap in the " + name(arena) +
                   " arena, where both live all the time; place them apart");
    if (!last || span.end > last->end)
      last = &span;
  }
  return Status::success();
}

/// Every Session buffer has one binding; no key is saved from two of them.
Status checkBindings(const Stage &stage, std::vector<SessionUse> &uses) {
  uses.assign(stage.buffers.size(), {});
  std::map<std::string, int32_t> saved;
  for (const Binding &binding : stage.bindings) {
    if (uses[binding.buffer].binding)
      return fault(bufferText(stage, binding.buffer) + " is bound twice; one binding must go");
    uses[binding.buffer].binding = &binding;
    if (binding.saved.empty())
      continue;
    auto [first, isNew] = saved.emplace(binding.saved, binding.buffer);
    if (!isNew)
      return fault(bufferText(stage, first->second) + " and " + bufferText(stage, binding.buffer) +
                   " are both saved as '" + binding.saved + "'; a key has one buffer a stage");
  }
  for (size_t i = 0; i < stage.buffers.size(); ++i)
    if (stage.buffers[i].lifetime == Lifetime::Session && !uses[i].binding)
      return fault(bufferText(stage, int64_t(i)) + " lives for the session, but no binding says what it starts with");
  return Status::success();
}

/// A tensor that is stored in a file and not saved again is never written.
Status findWrites(const Plan &plan, int64_t stageIndex, std::vector<SessionUse> &uses) {
  const Stage &stage = plan.stages[stageIndex];
  for (size_t p = 0; p < stage.programs.size(); ++p)
    for (size_t i = 0; i < stage.programs[p].instructions.size(); ++i)
      for (const BufferAccess &access : accessesOf(plan, stage.programs[p].instructions[i])) {
        const Binding *binding = uses[access.ref.buffer].binding;
        if (!access.write || !binding)
          continue;
        uses[access.ref.buffer].isWritten = true;
        if (storedTensorOf(*binding) && binding->saved.empty())
          return fault(instructionText(plan, stageIndex, int64_t(p), int64_t(i)) + ": writes to " +
                       bufferText(stage, access.ref.buffer) +
                       ", a weight that no checkpoint saves; such weights are only read");
      }
  return Status::success();
}

/// A form that a device made of a weight would be stale once a program wrote to it, and wrong for whoever reads it
/// otherwise.
Status checkPacked(const Plan &plan, int64_t stageIndex, const std::vector<SessionUse> &uses) {
  const Stage &stage = plan.stages[stageIndex];
  std::vector<const Gemm *> packed(stage.buffers.size(), nullptr); // a product that takes the buffer so
  auto eachInstruction = [&](auto check) {
    for (size_t p = 0; p < stage.programs.size(); ++p)
      for (size_t i = 0; i < stage.programs[p].instructions.size(); ++i)
        HPC_RETURN_IF_ERROR(check(stage.programs[p].instructions[i], instructionText(plan, stageIndex, int64_t(p), int64_t(i))));
    return Status::success();
  };
  HPC_RETURN_IF_ERROR(eachInstruction([&](const Instruction &instruction, const std::string &text) {
    const auto *gemm = std::get_if<Gemm>(&instruction.action);
    if (!gemm || !packable(*gemm).packed)
      return Status::success();
    const int32_t buffer = packable(*gemm).place.buffer;
    const std::string takes = text + ": takes " + bufferText(stage, buffer) + " packed, but ";
    if (stage.buffers[buffer].lifetime != Lifetime::Session || uses[buffer].isWritten)
      return fault(takes + (uses[buffer].isWritten ? "a program writes to it" : "it does not live for the session") +
                   "; only what never changes may be packed");
    if (!uses[buffer].binding->saved.empty())
      return fault(takes + "checkpoints save it; they would have the device's form of it");
    if (!canPack(plan, stage, *gemm))
      return fault(takes + "its " + (gemm->windows ? "A" : "B") + " is not all of it, without gaps and the same for a whole batch");
    packed[buffer] = gemm;
    return Status::success();
  }));
  return eachInstruction([&](const Instruction &instruction, const std::string &text) {
    const auto *gemm = std::get_if<Gemm>(&instruction.action);
    for (const BufferAccess &access : accessesOf(plan, instruction)) {
      const Gemm *taker = packed[access.ref.buffer];
      if (taker && !(gemm && access.operand == packableNumber(*gemm) && packable(*gemm).packed && packsAlike(*taker, *gemm)))
        return fault(text + ": reads " + bufferText(stage, access.ref.buffer) + " (" + access.role +
                     "), which a product takes packed; what else reads it must be products that take it packed too, "
                     "stored the same way");
    }
    return Status::success();
  });
}

/// The live buffers of a program at one moment.
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

Status checkTemporaries(const Plan &plan, int64_t stageIndex, int64_t programIndex, const std::vector<Span> &always) {
  const Stage &stage = plan.stages[stageIndex];
  Expected<std::vector<LiveRange>> ranges = liveRanges(plan, stageIndex, programIndex);
  if (!ranges.ok())
    return ranges.status();
  LiveSet live(stage, always);
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
      bool isTemp = stage.buffers[other->buffer].lifetime == Lifetime::Program;
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

} // namespace

/// Finds the uses of a stage's Session buffers, and checks these.
static Status checkSession(const Plan &plan, size_t s, std::vector<SessionUse> &uses) {
  const Stage &stage = plan.stages[s];
  const std::string where = "stage " + std::to_string(s);
  HPC_RETURN_IF_ERROR(checkBindings(stage, uses).at(where));
  HPC_RETURN_IF_ERROR(findWrites(plan, int64_t(s), uses));
  HPC_RETURN_IF_ERROR(checkPacked(plan, int64_t(s), uses));
  return checkApart(stage, ArenaKind::Session, uses).at(where);
}

Status checkSharedMemory(const Plan &plan) {
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    std::vector<SessionUse> uses;
    HPC_RETURN_IF_ERROR(checkSession(plan, s, uses));
  }
  return Status::success();
}

Status checkMemory(const Plan &plan) {
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage &stage = plan.stages[s];
    std::vector<SessionUse> uses;
    HPC_RETURN_IF_ERROR(checkSession(plan, s, uses));
    for (ArenaKind arena : {ArenaKind::Work, ArenaKind::Host})
      HPC_RETURN_IF_ERROR(checkApart(stage, arena, uses).at("stage " + std::to_string(s)));
    std::vector<Span> always = spansOf(stage, ArenaKind::Work);
    for (size_t p = 0; p < stage.programs.size(); ++p)
      HPC_RETURN_IF_ERROR(checkTemporaries(plan, int64_t(s), int64_t(p), always));
  }
  return Status::success();
}

} // namespace hpc::plan
