// Gaps between products, runs of equal layers among them, and the blocks that they give.
#include "passes/Stage/Blocks.h"

#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/ElementType.h"
#include "compiler/Interfaces/Cost.h"
#include "compiler/Interfaces/Structure.h"
#include "compiler/ModuleMachine.h"

#include <deque>

namespace hpc {

/// Layers of more products than this are not recognised; keeps the search linear in the program.
constexpr size_t maxPeriod = 1024;

namespace {
/// The gap before product `i`, for i >= 1; entry 0 is unused.
struct Gap {
  size_t op = 0;        ///< cut before this op of the trunk
  int64_t crossing = 0; ///< values
};

/// products[first, first + period * times) is `times` equal layers, each of which begins at a gap.
struct Run {
  size_t first = 0, period = 0, times = 0;
  size_t size() const { return period * times; }
  size_t end() const { return first + size(); }
};
} // namespace

/// Name, types and attributes of a product; ids, names and texts are left out.
static std::string signatureOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << op->getName() << op->getOperandTypes() << "->" << op->getResultTypes();
  for (NamedAttribute attr : op->getAttrs())
    if (!attr.getName().strref().contains('.'))
      out << attr.getName() << attr.getValue();
  return text;
}

static double flopsOf(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost ? double(cost.getFlops()) : 0;
}

/// Operations of an op. On a machine (--machine) at least as many as it computes while it moves the op's values: what a product reads and writes, what
/// another op writes, since most of what that reads comes from the op before it in one kernel.
static double costOf(Operation *op, const std::optional<Prices> &prices) {
  const double flops = flopsOf(op);
  if (!prices || isView(op))
    return flops;
  double moved = 0;
  auto add = [&](Value value) {
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      moved += double(type.getNumElements() * elementBytes(type));
  };
  llvm::for_each(op->getResults(), add);
  if (nn::isProduct(op))
    llvm::for_each(op->getOperands(), add);
  return std::max(flops, moved * prices->operationsPerByte);
}

static std::vector<Gap> findGaps(const Trunk &trunk) {
  std::vector<Gap> gaps(trunk.products.size());
  for (size_t i = 1; i < trunk.products.size(); ++i) {
    size_t best = trunk.products[i];
    for (size_t op = trunk.products[i]; op > trunk.products[i - 1]; --op)
      if (trunk.crossingBytes[op] < trunk.crossingBytes[best])
        best = op; // among equals the last: the ops after a product belong to it
    gaps[i] = {best, trunk.crossing[best]};
  }
  return gaps;
}

/// Per gap: whether no gap less than `distance` away has fewer values crossing. Sliding minimum, linear.
static std::vector<bool> localMinima(ArrayRef<Gap> gaps, size_t distance) {
  std::vector<bool> result(gaps.size(), false);
  std::deque<size_t> window; // candidates for the minimum, their crossings growing
  size_t next = 1;
  for (size_t i = 1; i < gaps.size(); ++i) {
    for (; next < gaps.size() && next < i + distance; ++next) {
      while (!window.empty() && gaps[window.back()].crossing >= gaps[next].crossing)
        window.pop_back();
      window.push_back(next);
    }
    while (window.front() + distance <= i)
      window.pop_front();
    result[i] = gaps[i].crossing <= gaps[window.front()].crossing;
  }
  return result;
}

/// The layers in a stretch of products that repeats with `period`. They begin where the fewest values cross between
/// them; among equals where most layers are whole, then where the last layer ends with the stretch (the first may
/// include a similar op from before it). At half of the cuts at least, no gap less than a layer away may have fewer
/// values crossing: near the ends of a stretch one may, since values that all layers share begin and end there.
static std::optional<Run> placeLayers(size_t begin, size_t end, size_t period, ArrayRef<Gap> gaps,
                                      const std::vector<bool> &isPlace) {
  std::optional<Run> best;
  std::tuple<double, size_t, size_t> bestCosts;
  for (size_t first = begin; first < begin + period && first + 2 * period <= end; ++first) {
    Run run{first, period, (end - first) / period};
    size_t places = 0;
    int64_t crossing = 0;
    for (size_t gap = first + period; gap < run.end(); gap += period) {
      places += isPlace[gap];
      crossing += gaps[gap].crossing;
    }
    size_t cuts = run.times - 1;
    std::tuple<double, size_t, size_t> costs(double(crossing) / double(cuts), end - begin - run.size(),
                                             end - run.end());
    if (2 * places >= cuts && (!best || costs < bestCosts)) {
      best = run;
      bestCosts = costs;
    }
  }
  return best;
}

/// The run of equal layers within products [begin, end) that covers the most; among equals the shortest layer, which
/// makes most blocks.
static std::optional<Run> findRun(ArrayRef<int> kinds, ArrayRef<Gap> gaps, size_t begin, size_t end) {
  std::optional<Run> best;
  for (size_t period = 1; period <= maxPeriod && begin + 2 * period <= end; ++period) {
    std::optional<std::vector<bool>> isPlace; // when it is needed
    for (size_t first = begin; first + 2 * period <= end; ++first) {
      size_t stretch = first;
      while (first + period < end && kinds[first] == kinds[first + period])
        ++first;
      size_t stretchEnd = first + period; // later starts within it cover less
      if (stretchEnd - stretch < 2 * period || (best && stretchEnd - stretch <= best->size()))
        continue;
      if (!isPlace)
        isPlace = localMinima(gaps, std::max<size_t>(period, 2));
      std::optional<Run> run = placeLayers(stretch, stretchEnd, period, gaps, *isPlace);
      if (run && (!best || run->size() > best->size()))
        best = run;
    }
  }
  return best;
}

/// Runs in order: the one that covers the most, then those before and after it (an encoder before a decoder). A run of
/// less than an eighth of all products does not count.
static void findRuns(ArrayRef<int> kinds, ArrayRef<Gap> gaps, size_t begin, size_t end, std::vector<Run> &runs) {
  std::optional<Run> run = findRun(kinds, gaps, begin, end);
  if (!run || run->size() * 8 < kinds.size())
    return;
  findRuns(kinds, gaps, begin, run->first, runs);
  runs.push_back(*run);
  findRuns(kinds, gaps, run->end(), end, runs);
}

/// Cuts products [begin, end), which lie between runs, at their own gaps where they cost more than an average part, as
/// convolutions before a recurrent layer do.
static void cutStretch(const Trunk &trunk, ArrayRef<Gap> gaps, const std::vector<bool> &isPlace, size_t begin, size_t end,
                       size_t parts, std::vector<size_t> &cuts) {
  if (end < begin + 2) // one product goes with the layer beside it
    return;
  double cost = 0, all = 0;
  for (auto [index, op] : llvm::enumerate(trunk.ops)) {
    double flops = flopsOf(op);
    all += flops;
    if ((begin == 0 || index >= gaps[begin].op) && (end == gaps.size() || index < gaps[end].op))
      cost += flops;
  }
  if (cost * double(parts) <= all)
    return;
  for (size_t gap = std::max<size_t>(begin, 1); gap <= end && gap < gaps.size(); ++gap)
    if (isPlace[gap])
      cuts.push_back(gaps[gap].op);
}

/// The cuts between blocks; `layers`: filled in.
static std::vector<size_t> findCuts(const Trunk &trunk, size_t parts, std::vector<LayerRun> &layers) {
  std::vector<Gap> gaps = findGaps(trunk);
  llvm::StringMap<int> ids; // numbers instead of texts, so that comparing is cheap
  SmallVector<int> kinds;
  for (size_t product : trunk.products)
    kinds.push_back(ids.try_emplace(signatureOf(trunk.ops[product]), int(ids.size())).first->second);

  std::vector<Run> runs;
  findRuns(kinds, gaps, 0, kinds.size(), runs);
  size_t covered = 0;
  for (const Run &run : runs)
    covered += run.size();
  if (2 * covered < kinds.size())
    runs.clear(); // a few products that happen to be alike are no layers
  std::vector<size_t> cuts;
  for (const Run &run : runs) {
    if (&run != &runs.front())
      cuts.push_back(gaps[run.first].op);
    LayerRun &found = layers.emplace_back();
    found.firstOp.push_back(run.first ? gaps[run.first].op : 0);
    for (size_t gap = run.first + run.period; gap < run.end(); gap += run.period) {
      cuts.push_back(gaps[gap].op);
      found.firstOp.push_back(gaps[gap].op);
    }
    found.endOp = run.end() < gaps.size() ? gaps[run.end()].op : trunk.ops.size();
  }
  std::vector<bool> isPlace = localMinima(gaps, 2);
  if (!runs.empty()) {
    size_t begin = 0;
    for (const Run &run : runs) {
      cutStretch(trunk, gaps, isPlace, begin, run.first, parts, cuts);
      begin = run.end();
    }
    cutStretch(trunk, gaps, isPlace, begin, gaps.size(), parts, cuts);
    llvm::sort(cuts);
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    return cuts;
  }
  // No layers: the best gaps, and all of them where those are too few.
  bool takesAll = size_t(llvm::count(isPlace, true)) + 1 < parts;
  for (size_t gap = 1; gap < gaps.size(); ++gap)
    if (takesAll || isPlace[gap])
      cuts.push_back(gaps[gap].op);
  return cuts;
}

Blocks findBlocks(func::FuncOp function, size_t parts) {
  Blocks blocks;
  blocks.trunk = findTrunk(function);
  blocks.firstOp.push_back(0);
  llvm::append_range(blocks.firstOp, findCuts(blocks.trunk, parts, blocks.layers));
  std::optional<Prices> prices;
  if (hasMachine(function))
    prices = pricesOf(function);
  for (size_t block = 0; block < blocks.size(); ++block) {
    double cost = 0;
    for (size_t i = blocks.firstOp[block]; i < blocks.endOp(block); ++i)
      cost += costOf(blocks.trunk.ops[i], prices);
    blocks.cost.push_back(cost);
  }
  return blocks;
}

} // namespace hpc
