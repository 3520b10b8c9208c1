// Greedy placement by size over live ranges.
#include "passes/Place/Place.h"

#include "runtime/base/CountText.h"
#include "runtime/plan/Liveness.h"
#include "runtime/plan/PlanFacts.h"

#include <algorithm>
#include <tuple>

namespace hpc {

using plan::Buffer;
using plan::Lifetime;

static constexpr int64_t alignment = 64;
static int64_t alignUp(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

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

namespace {
/// Live ranges over a program's instructions, to be asked which of them meet another: a segment tree, so that a long
/// program of short lives costs no more than its lives at once.
class LiveRangeTree {
public:
  explicit LiveRangeTree(int32_t instructions) : size(instructions), nodes(4 * size_t(std::max(instructions, 1))) {}

  void add(const plan::LiveRange &range, size_t number) { add(1, 0, size - 1, range, number); }
  /// Calls visit(number) at least once for each range that was added and meets `range`.
  template <typename Visit> void eachMeeting(const plan::LiveRange &range, Visit visit) const {
    meet(1, 0, size - 1, range, visit);
  }

private:
  struct Node {
    std::vector<size_t> all;   ///< ranges that live throughout the node's instructions
    std::vector<size_t> below; ///< ranges that are in `all` of a node under it
  };
  void add(size_t node, int32_t first, int32_t last, const plan::LiveRange &range, size_t number) {
    if (range.first <= first && last <= range.last)
      return nodes[node].all.push_back(number);
    nodes[node].below.push_back(number);
    int32_t middle = first + (last - first) / 2;
    if (range.first <= middle)
      add(2 * node, first, middle, range, number);
    if (range.last > middle)
      add(2 * node + 1, middle + 1, last, range, number);
  }
  template <typename Visit>
  void meet(size_t node, int32_t first, int32_t last, const plan::LiveRange &range, Visit visit) const {
    for (size_t number : nodes[node].all)
      visit(number);
    if (range.first <= first && last <= range.last) {
      for (size_t number : nodes[node].below)
        visit(number);
      return;
    }
    int32_t middle = first + (last - first) / 2;
    if (range.first <= middle)
      meet(2 * node, first, middle, range, visit);
    if (range.last > middle)
      meet(2 * node + 1, middle + 1, last, range, visit);
  }

  int32_t size;
  std::vector<Node> nodes;
};
} // namespace

/// Places the temporaries of one program from `start`; returns the end.
static int64_t placeTemporaries(plan::Stage &stage, std::vector<plan::LiveRange> ranges, int64_t start) {
  // The largest first; among equals in a fixed order, so that the same program always gets the same plan.
  std::sort(ranges.begin(), ranges.end(), [&](const plan::LiveRange &a, const plan::LiveRange &b) {
    return std::make_tuple(-stage.buffers[a.buffer].bytes, a.first, a.buffer) <
           std::make_tuple(-stage.buffers[b.buffer].bytes, b.first, b.buffer);
  });
  int64_t end = start;
  int32_t instructions = 0;
  for (const plan::LiveRange &range : ranges)
    instructions = std::max(instructions, range.last + 1);
  LiveRangeTree placed(instructions);
  for (size_t i = 0; i < ranges.size(); ++i) {
    // What is already placed and lives at the same time, by offset; the first gap that is wide enough is taken.
    std::vector<std::pair<int64_t, int64_t>> taken;
    placed.eachMeeting(ranges[i], [&](size_t j) {
      const Buffer &other = stage.buffers[ranges[j].buffer];
      taken.push_back({other.offset, other.offset + alignUp(other.bytes)});
    });
    placed.add(ranges[i], i);
    std::sort(taken.begin(), taken.end());
    Buffer &buffer = stage.buffers[ranges[i].buffer];
    int64_t offset = start;
    for (auto [from, to] : taken) {
      if (from - offset >= alignUp(buffer.bytes))
        break;
      offset = std::max(offset, to);
    }
    buffer.offset = offset;
    end = std::max(end, offset + alignUp(buffer.bytes));
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
  if (options.memory == 0)
    return Status::success();
  plan::PlanFacts facts = plan::staticFacts(plan);
  for (size_t index = 0; index < plan.stages.size(); ++index)
    HPC_RETURN_IF_ERROR(checkCapacity(plan.stages[index], facts.memory[index], index, options.memory));
  return Status::success();
}

} // namespace hpc
