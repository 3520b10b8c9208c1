// The graph has a node for each op and each of its results; views of one buffer are kept as one.
#include "passes/Recompute/KeptValues.h"

#include "compiler/BlockMark.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"
#include "compiler/Interfaces/Cost.h"
#include "compiler/Interfaces/Structure.h"
#include "compiler/Providers.h"
#include "passes/Recompute/MinimumCut.h"

#include <cmath>
#include <set>

namespace hpc {

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * elementBytes(type);
}

/// Windows, or the padding before them. Where gradients read these, the image is kept instead, whose pixels windows
/// repeat several times.
static bool isOfWindows(Operation *op) {
  auto isWindow = [](Operation *user) { return isa<nn::WindowOp>(user); };
  return isWindow(op) || (isa<nn::PadOp>(op) && llvm::all_of(op->getUsers(), isWindow));
}
static bool isWideningCast(Operation *op) { return isa<nn::CastOp>(op) && bytesOf(op->getOperand(0)) < bytesOf(op->getResult(0)); }
/// Never kept: the operand has the same numbers in fewer bytes.
static bool isLargerThanOperand(Operation *op) { return isOfWindows(op) || isWideningCast(op); }
static bool showsOperand(Operation *op) { return isBufferAlias(op) || isLargerThanOperand(op); }

double repetitionCost(Operation *op, const Prices &prices) {
  if (showsOperand(op))
    return 0;
  double moved = 0;
  for (Value value : op->getResults())
    moved += double(bytesOf(value));
  if (crossesRanks(op))
    return moved * prices.operationsPerByteSent;
  for (Value value : op->getOperands())
    moved += double(bytesOf(value));
  auto cost = dyn_cast<CostOpInterface>(op);
  return moved * prices.operationsPerByte + (cost ? double(cost.getFlops()) : 0);
}

// ---- what a policy lets be computed again -------------------------------------------------------

/// Whatever its size, unlike nn::isProduct.
static bool isContraction(Operation *op) { return effortOf(op) == Effort::Product; }

/// A product of two values of the micro-batch: of queries and keys, of probabilities and values.
static bool isContractionOfActivations(Operation *op, const ForwardPart &part) {
  return isContraction(op) &&
         llvm::none_of(op->getOperands(), [&](Value operand) { return part.sameAlways.contains(operand); });
}

/// Ops between two products of activations, the first of them included, with no product of a weight on the way.
static llvm::DenseSet<Operation *> insideAttention(const ForwardPart &part) {
  llvm::DenseSet<Operation *> behind, before, inside;
  auto isBehind = [&](Operation *op) { return op && behind.contains(op); };
  for (Operation *op : part.ops)
    if (isContractionOfActivations(op, part) ||
        (!isContraction(op) && llvm::any_of(op->getOperands(), [&](Value value) { return isBehind(value.getDefiningOp()); })))
      behind.insert(op);
  for (Operation *op : llvm::reverse(part.ops))
    if (llvm::any_of(op->getUsers(), [&](Operation *user) {
          return part.has(user) && (isContractionOfActivations(user, part) || (!isContraction(user) && before.contains(user)));
        }))
      before.insert(op);
  for (Operation *op : part.ops)
    if (behind.contains(op) && before.contains(op))
      inside.insert(op);
  return inside;
}

/// Whether another block of the same program reads a result.
static bool leavesBlock(Operation *op, const ForwardPart &part) {
  std::optional<int64_t> block = blockMark(op);
  return block && llvm::any_of(op->getUsers(), [&](Operation *user) {
    return part.has(user) && blockMark(user).value_or(*block) != *block;
  });
}

namespace {
struct Repeatable {
  const ForwardPart &part;
  RecomputePolicy policy;
  llvm::DenseSet<Operation *> inside;

  Repeatable(const ForwardPart &part, RecomputePolicy policy) : part(part), policy(policy) {
    if (policy == RecomputePolicy::Attention)
      inside = insideAttention(part);
  }

  bool operator()(Operation *op) const {
    if (isa<dist::AccumulateOp>(op))
      return false; // an accumulation may run only once
    if (part.gathers.contains(op) || part.activationGathers.contains(op) || showsOperand(op))
      return true;
    switch (policy) {
    case RecomputePolicy::None:
      return false;
    case RecomputePolicy::Attention:
      return inside.contains(op) || part.rowGathers.contains(op);
    case RecomputePolicy::Full:
    case RecomputePolicy::Auto:
      return !leavesBlock(op, part);
    }
    return false;
  }
};
} // namespace

// ---- the cut ------------------------------------------------------------------------------------

static int64_t capacityOf(double cost) {
  return int64_t(std::llround(std::min(cost, double(MinimumCut::unlimited / 1024))));
}

KeptValues chooseKept(const ForwardPart &part, RecomputePolicy policy, const Prices &prices,
                      llvm::function_ref<double(int64_t)> priceOfBlock) {
  Repeatable isRepeatable(part, policy);
  llvm::DenseMap<Operation *, size_t> nodeOfOp;
  llvm::DenseMap<Value, size_t> nodeOfValue;
  size_t nodes = 2;
  const size_t source = 0, sink = 1;
  for (Operation *op : part.ops) {
    if (op->getNumOperands() == 0)
      continue; // every program has its own copy
    nodeOfOp[op] = nodes++;
    for (Value result : op->getResults())
      nodeOfValue[result] = nodes++;
  }
  MinimumCut cut(nodes);
  for (Operation *op : part.ops) {
    auto node = nodeOfOp.find(op);
    if (node == nodeOfOp.end())
      continue;
    bool isGather = part.gathers.contains(op) || (policy != RecomputePolicy::Auto && part.activationGathers.contains(op)) ||
                    (policy == RecomputePolicy::Attention && part.rowGathers.contains(op));
    int64_t block = blockMark(op).value_or(-1);
    // Backward of the last block begins where its forward ends: with one micro-batch its values are still in memory.
    bool isFree = part.slots == 1 && block >= 0 && block == part.lastBlock;
    double price = policy == RecomputePolicy::Auto ? priceOfBlock(block) : highestPrice;
    cut.addEdge(source, node->second,
                !isRepeatable(op) ? MinimumCut::unlimited : isGather ? 0 : capacityOf(repetitionCost(op, prices)));
    for (Value result : op->getResults()) {
      double bytes = isFree ? 0 : double(bytesOf(result) * part.slots);
      cut.addEdge(node->second, nodeOfValue[result],
                  isGather || isLargerThanOperand(op) ? MinimumCut::unlimited : capacityOf(price * bytes));
    }
    for (Value operand : op->getOperands())
      if (auto made = nodeOfValue.find(operand); made != nodeOfValue.end())
        cut.addEdge(made->second, node->second, MinimumCut::unlimited);
  }
  for (Value value : part.read)
    cut.addEdge(nodeOfValue[value], sink, MinimumCut::unlimited);
  // A value on the sink's side is kept if its op is on the source's side.
  std::vector<bool> isAgain = cut.sinkSide(source, sink);
  KeptValues kept;
  llvm::DenseSet<Value> buffers;
  for (Operation *op : part.ops) {
    auto node = nodeOfOp.find(op);
    if (node == nodeOfOp.end())
      continue;
    if (isAgain[node->second]) {
      kept.again.insert(op);
      kept.cost += part.gathers.contains(op) ? 0 : repetitionCost(op, prices); // gathered weights are never kept
      continue;
    }
    for (Value result : op->getResults())
      if (isAgain[nodeOfValue[result]] && buffers.insert(aliasRoot(result)).second)
        kept.bytes += bytesOf(result) * part.slots;
  }
  return kept;
}

// ---- within a budget ----------------------------------------------------------------------------

namespace {
struct Choice {
  SmallVector<KeptValues> parts;
  int64_t bytes = 0;
};
} // namespace

SmallVector<KeptValues> chooseWithin(ArrayRef<const ForwardPart *> parts, int64_t budget, const Prices &prices) {
  auto choose = [&](llvm::function_ref<double(int64_t)> price) {
    Choice choice;
    for (const ForwardPart *part : parts) {
      choice.parts.push_back(chooseKept(*part, RecomputePolicy::Auto, prices, price));
      choice.bytes += choice.parts.back().bytes;
    }
    return choice;
  };
  auto fits = [&](const Choice &choice) { return choice.bytes <= budget; };
  double low = 0, high = highestPrice;
  Choice best = choose([&](int64_t) { return low; });
  if (fits(best))
    return best.parts;
  best = choose([&](int64_t) { return high; });
  if (!fits(best))
    return best.parts;
  // 1. The least price at which all blocks together fit: steps of a hundredth, from a hundredth of an operation on.
  double least = std::log(0.01), most = std::log(high);
  while (most - least > 0.01) {
    double middle = (least + most) / 2;
    Choice choice = choose([&](int64_t) { return std::exp(middle); });
    (fits(choice) ? most : least) = middle;
    if (fits(choice))
      best = std::move(choice);
  }
  // 2. As many of the last blocks as possible at the price just below.
  low = std::exp(least);
  high = std::exp(most);
  std::set<int64_t> blocks{-1};
  for (const ForwardPart *part : parts)
    for (Operation *op : part->ops)
      blocks.insert(blockMark(op).value_or(-1));
  std::vector<int64_t> inOrder(blocks.begin(), blocks.end());
  size_t tooFew = 0, enough = inOrder.size(); // blocks before which the high price holds
  while (enough - tooFew > 1) {
    size_t middle = (tooFew + enough) / 2;
    Choice choice = choose([&](int64_t block) { return block < inOrder[middle] ? high : low; });
    (fits(choice) ? enough : tooFew) = middle;
    if (fits(choice))
      best = std::move(choice);
  }
  return best.parts;
}

} // namespace hpc
