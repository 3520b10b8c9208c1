// Greedy placement over live ranges, in two orders and in what follows from the better one.
#include "passes/Place/Temporaries.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace hpc {

using plan::LiveRange;

namespace {
/// Live ranges over a program's instructions, to be asked which of them meet another: a segment tree, so that a long
/// program of short lives costs no more than its lives at once.
class LiveRangeTree {
public:
  explicit LiveRangeTree(int32_t instructions) : size(instructions), nodes(4 * size_t(std::max(instructions, 1))) {}

  void add(const LiveRange &range, size_t number) { add(1, 0, size - 1, range, number); }
  /// Calls visit(number) at least once for each range that was added and meets `range`.
  template <typename Visit> void eachMeeting(const LiveRange &range, Visit visit) const {
    meet(1, 0, size - 1, range, visit);
  }

private:
  struct Node {
    std::vector<size_t> all;   ///< ranges that live throughout the node's instructions
    std::vector<size_t> below; ///< ranges that are in `all` of a node under it
  };
  void add(size_t node, int32_t first, int32_t last, const LiveRange &range, size_t number) {
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
  void meet(size_t node, int32_t first, int32_t last, const LiveRange &range, Visit visit) const {
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

/// The smallest of first..last (both included), in O(log n).
class RangeMinimum {
public:
  explicit RangeMinimum(const std::vector<int32_t> &values) : size(values.size()), nodes(2 * values.size()) {
    std::copy(values.begin(), values.end(), nodes.begin() + ptrdiff_t(size));
    for (size_t node = size - 1; node > 0; --node)
      nodes[node] = std::min(nodes[2 * node], nodes[2 * node + 1]);
  }
  int32_t over(int32_t firstValue, int32_t lastValue) const {
    size_t first = size + size_t(firstValue), end = size + size_t(lastValue) + 1;
    int32_t least = nodes[first];
    for (; first < end; first /= 2, end /= 2) {
      if (first % 2)
        least = std::min(least, nodes[first++]);
      if (end % 2)
        least = std::min(least, nodes[--end]);
    }
    return least;
  }

private:
  size_t size;
  std::vector<int32_t> nodes; ///< a binary tree, the values behind `size`
};

/// A range with what orders it.
struct Temporary {
  LiveRange range;
  int64_t bytes = 0;   ///< aligned
  int32_t breadth = 0; ///< how many instructions are fuller than any of its life
  int64_t offset = 0;
};

} // namespace

/// Places in the order given, from 0 on; returns the end.
static int64_t placeInOrder(std::vector<Temporary> &temporaries, int32_t instructions) {
  int64_t end = 0;
  LiveRangeTree placed(instructions);
  std::vector<size_t> metBy(temporaries.size(), temporaries.size()); // the last that a range has met
  for (size_t i = 0; i < temporaries.size(); ++i) {
    // Placed ranges that live at the same time, by offset; the first gap that is wide enough is taken.
    Temporary &one = temporaries[i];
    std::vector<std::pair<int64_t, int64_t>> taken;
    placed.eachMeeting(one.range, [&](size_t j) {
      if (std::exchange(metBy[j], i) == i)
        return;
      taken.push_back({temporaries[j].offset, temporaries[j].offset + temporaries[j].bytes});
    });
    placed.add(one.range, i);
    std::sort(taken.begin(), taken.end());
    one.offset = 0;
    for (auto [from, to] : taken) {
      if (from - one.offset >= one.bytes)
        break;
      one.offset = std::max(one.offset, to);
    }
    end = std::max(end, one.offset + one.bytes);
  }
  return end;
}

/// Sets `breadth`; returns the most bytes that live at once: no placement ends lower.
static int64_t measureBreadths(std::vector<Temporary> &temporaries, int32_t instructions) {
  std::vector<int64_t> live(size_t(instructions) + 1, 0);
  for (const Temporary &one : temporaries) {
    live[size_t(one.range.first)] += one.bytes;
    live[size_t(one.range.last) + 1] -= one.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  std::vector<int32_t> fullestFirst(live.size()), rank(live.size());
  std::iota(fullestFirst.begin(), fullestFirst.end(), 0);
  std::stable_sort(fullestFirst.begin(), fullestFirst.end(),
                   [&](int32_t a, int32_t b) { return live[size_t(a)] > live[size_t(b)]; });
  for (size_t i = 0; i < rank.size(); ++i)
    rank[size_t(fullestFirst[i])] = int32_t(i);
  RangeMinimum ranks(rank);
  for (Temporary &one : temporaries)
    one.breadth = ranks.over(one.range.first, one.range.last);
  return live[size_t(fullestFirst[0])];
}

int64_t placeTemporaries(plan::Stage &stage, const std::vector<LiveRange> &ranges, int64_t start) {
  if (ranges.empty())
    return start;
  std::vector<Temporary> bySize;
  int32_t instructions = 0;
  for (const LiveRange &range : ranges) {
    bySize.push_back({range, alignUp(stage.buffers[size_t(range.buffer)].bytes)});
    instructions = std::max(instructions, range.last + 1);
  }
  const int64_t bound = measureBreadths(bySize, instructions);
  // Among equals in a fixed order.
  auto sizeKey = [](const Temporary &one) { return std::make_tuple(-one.bytes, one.range.first, one.range.buffer); };
  std::sort(bySize.begin(), bySize.end(),
            [&](const Temporary &a, const Temporary &b) { return sizeKey(a) < sizeKey(b); });
  std::vector<Temporary> byBreadth = bySize;
  int64_t end = placeInOrder(bySize, instructions);
  if (end > bound) {
    std::stable_sort(byBreadth.begin(), byBreadth.end(),
                     [](const Temporary &a, const Temporary &b) { return a.breadth < b.breadth; });
    if (int64_t other = placeInOrder(byBreadth, instructions); other < end) {
      end = other;
      bySize.swap(byBreadth);
    }
  }
  // Ranges that reach the end had no room left under it: they go first, a few times.
  std::vector<Temporary> order = bySize;
  for (int round = 0; round < 4 && end > bound; ++round) {
    const auto top = std::max_element(order.begin(), order.end(), [](const Temporary &a, const Temporary &b) { return a.offset + a.bytes < b.offset + b.bytes; });
    std::rotate(order.begin(), top, top + 1);
    if (int64_t other = placeInOrder(order, instructions); other < end) {
      end = other;
      bySize = order;
    }
  }
  for (const Temporary &one : bySize)
    stage.buffers[size_t(one.range.buffer)].offset = start + one.offset;
  return start + end;
}

} // namespace hpc
