// Trunk, cuts, segments, and the repetition among them.
#include "passes/Stage/Blocks.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Origin.h"
#include "compiler/Interfaces/Cost.h"

#include "llvm/ADT/DenseSet.h"

namespace hpc {

namespace {
/// Ops between two neighbouring cuts: trunk[begin, end).
struct Segment {
  size_t begin, end;
  std::string signature;  ///< equal for segments that compute the same on other weights
  bool hasMatrix = false; ///< reads a weight of rank 2 or more
};
} // namespace

/// Op names, types and attributes of what is computed; ids, names and texts are left out.
static std::string signatureOf(ArrayRef<Operation *> ops) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (Operation *op : ops) {
    out << op->getName() << op->getOperandTypes() << "->" << op->getResultTypes();
    for (NamedAttribute attr : op->getAttrs())
      if (!attr.getName().strref().contains('.') && attr.getName() != "cause" && attr.getName() != "avoid")
        out << attr.getName() << attr.getValue();
    out << ";";
  }
  return text;
}

static std::vector<Segment> findSegments(ArrayRef<Operation *> trunk, const nn::Origins &origins) {
  llvm::DenseMap<Operation *, size_t> position;
  for (auto [index, op] : llvm::enumerate(trunk))
    position[op] = index;
  // ends[i]: trunk values whose last trunk use is op i.
  std::vector<std::vector<Value>> lastUses(trunk.size());
  for (Operation *op : trunk)
    for (Value result : op->getResults()) {
      size_t last = 0;
      bool isUsed = false;
      for (Operation *user : result.getUsers())
        if (auto found = position.find(user); found != position.end()) {
          last = std::max(last, found->second);
          isUsed = true;
        }
      if (isUsed)
        lastUses[last].push_back(result);
    }

  std::vector<Segment> segments;
  int64_t crossing = 0;
  size_t begin = 0;
  for (size_t i = 0; i < trunk.size(); ++i) {
    for (Value result : trunk[i]->getResults())
      crossing += llvm::any_of(result.getUsers(), [&](Operation *user) { return position.count(user); });
    crossing -= int64_t(lastUses[i].size());
    if (crossing > 1 && i + 1 < trunk.size())
      continue;
    Segment segment{begin, i + 1, signatureOf(trunk.slice(begin, i + 1 - begin)), false};
    for (Operation *op : trunk.slice(begin, i + 1 - begin))
      for (Value operand : op->getOperands())
        segment.hasMatrix |=
            origins.lookup(operand).isWeight() && cast<RankedTensorType>(operand.getType()).getRank() >= 2;
    segments.push_back(std::move(segment));
    begin = i + 1;
  }
  return segments;
}

namespace {
/// segments[first, first + period * times) is `times` equal runs.
struct Repetition {
  size_t first = 0, period = 0, times = 0;
  size_t ops = 0; ///< trunk ops that it covers
};
} // namespace

/// The repetition with a matrix in each run that covers the most ops; among equals the shortest period, which makes
/// most blocks.
static Repetition findRepetition(ArrayRef<Segment> segments) {
  // Numbers instead of texts, so that comparing is cheap.
  llvm::StringMap<int> ids;
  SmallVector<int> kinds;
  for (const Segment &segment : segments)
    kinds.push_back(ids.try_emplace(segment.signature, int(ids.size())).first->second);

  Repetition best;
  for (size_t period = 1; period * 2 <= segments.size(); ++period)
    for (size_t first = 0; first + 2 * period <= segments.size(); ++first) {
      size_t matching = 0;
      while (first + period + matching < segments.size() && kinds[first + matching] == kinds[first + period + matching])
        ++matching;
      size_t times = 1 + matching / period;
      if (times < 2)
        continue;
      ArrayRef<Segment> run = segments.slice(first, period);
      if (llvm::none_of(run, [](const Segment &segment) { return segment.hasMatrix; }))
        continue;
      size_t ops = segments[first + times * period - 1].end - segments[first].begin;
      if (ops > best.ops)
        best = {first, period, times, ops};
      first += matching; // later starts within this run cover less
    }
  return best;
}

Blocks findBlocks(func::FuncOp function) {
  nn::Origins origins = nn::findOrigins(function);
  Blocks blocks;
  for (Operation &op : function.getBody().front().without_terminator())
    if (llvm::any_of(op.getResults(), [&](Value result) { return origins[result].isTrunk(); }))
      blocks.trunk.push_back(&op);

  std::vector<Segment> segments = findSegments(blocks.trunk, origins);
  blocks.firstOp.push_back(0);
  if (Repetition repetition = findRepetition(segments); repetition.times) {
    for (size_t i = 1; i < repetition.times; ++i)
      blocks.firstOp.push_back(segments[repetition.first + i * repetition.period].begin);
  } else {
    // No layers: every segment with a matrix starts a block, and what follows it without one belongs to it.
    bool seenMatrix = false;
    for (const Segment &segment : segments) {
      if (segment.hasMatrix && seenMatrix)
        blocks.firstOp.push_back(segment.begin);
      seenMatrix |= segment.hasMatrix;
    }
  }

  for (auto [index, first] : llvm::enumerate(blocks.firstOp)) {
    size_t end = index + 1 < blocks.size() ? blocks.firstOp[index + 1] : blocks.trunk.size();
    double cost = 0;
    for (size_t i = first; i < end; ++i)
      if (auto op = dyn_cast<CostOpInterface>(blocks.trunk[i]))
        cost += double(op.getFlops());
    blocks.cost.push_back(cost);
  }
  return blocks;
}

} // namespace hpc
