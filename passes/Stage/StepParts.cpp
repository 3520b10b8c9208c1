// One walk over the function finds the ops that run once a step, one over the trunk the parts, and one back over the
// gradients the weight gradients.
#include "passes/Stage/StepParts.h"

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Interfaces/ShardingRule.h"
#include "compiler/StepPart.h"

namespace hpc {

pipe::ProgramKind StepParts::kindOf(Program program) const {
  if (program < parts)
    return pipe::ProgramKind::forward;
  return (program - parts) % 2 ? pipe::ProgramKind::weight_gradient : pipe::ProgramKind::backward;
}

std::optional<StepParts::Program> StepParts::programOf(Operation *op) const {
  auto found = programs.find(op);
  return found == programs.end() ? std::nullopt : std::optional(found->second);
}
std::optional<StepParts::Program> StepParts::programOf(Value value) const {
  Operation *op = value.getDefiningOp();
  return op ? programOf(op) : std::nullopt;
}

bool StepParts::isTotal(Value value) const { return microBatches > 1 && value.getDefiningOp<dist::AccumulateOp>(); }

StepParts::StepParts(func::FuncOp function, const Blocks &blocks, ArrayRef<size_t> blocksOfPart, size_t stages,
                     BackwardPrograms backward)
    : function(function), stages(stages), parts(blocksOfPart.size()), backwardPrograms(backward),
      microBatches(dist::meshOf(function).sizeOf(dist::AxisRole::Time)) {
  updates = parts > 1 || microBatches > 1 || backwardPrograms != BackwardPrograms::None;
  if (updates)
    findOnceAStep(blocks);
  placeForward(blocks, blocksOfPart);
  placeLater(blocks);
  if (backwardPrograms == BackwardPrograms::Apart)
    splitBackward(blocks);
}

/// Whether an op reads or makes a value that differs by micro-batch: a term of a gradient before it is accumulated.
static bool isPerMicroBatch(Operation *op, const dist::Mesh &mesh) {
  auto isOwn = [&](Value value) {
    return dist::shardingAttrOf(value) && dist::isPerMicroBatch(dist::shardingOf(value), mesh);
  };
  return llvm::any_of(op->getOperands(), isOwn) || llvm::any_of(op->getResults(), isOwn);
}

void StepParts::findOnceAStep(const Blocks &blocks) {
  dist::Mesh mesh = dist::meshOf(function);
  llvm::DenseSet<Operation *> trunk(blocks.trunk.ops.begin(), blocks.trunk.ops.end());
  trunk.insert(blocks.trunk.later.begin(), blocks.trunk.later.end());
  for (Operation &op : function.getBody().front().without_terminator()) {
    bool isUpdate = trunk.contains(&op) && stepPartOf(op.getLoc()) == StepPart::Update &&
                    (microBatches == 1 || !isPerMicroBatch(&op, mesh));
    if (isUpdate || llvm::any_of(op.getOperands(), [&](Value value) {
          Operation *producer = value.getDefiningOp();
          return producer && (isTotal(value) || onceAStep.contains(producer));
        }))
      onceAStep.insert(&op);
  }
  if (microBatches == 1)
    findGradientTails(trunk);
}

/// Whether a sum passes through an op, which makes it no smaller: added terms, a factor, a view, a collective.
static bool passesSums(Operation *op) {
  if (isa<dist::DistDialect>(op->getDialect()))
    return op->getNumOperands() == 1;
  auto rules = dyn_cast<ShardingRuleOpInterface>(op);
  if (!rules || op->getNumResults() != 1)
    return false;
  ShardingRule rule = rules.getShardingRule();
  return rule.linear.kind != LinearClause::None &&
         llvm::none_of(rule.factors, [](const ShardingFactor &factor) { return factor.reduction.has_value(); });
}

bool StepParts::isGradientTail(Operation *op) const {
  for (OpOperand &use : op->getUses()) {
    bool isReturned = isa<func::ReturnOp>(use.getOwner()) &&
                      !nn::resultPort(function, use.getOperandNumber()).gradient.empty();
    if (!isReturned && !onceAStep.contains(use.getOwner()))
      return false;
  }
  return !op->use_empty() && passesSums(op);
}

/// With one micro-batch no sum over micro-batches ends a parameter's gradient. It ends in additions and factors whose
/// result only the update reads: terms of two stages meet there, and a factor from another stage.
void StepParts::findGradientTails(const llvm::DenseSet<Operation *> &trunk) {
  for (Operation &op : llvm::reverse(function.getBody().front().without_terminator()))
    if (trunk.contains(&op) && stepPartOf(op.getLoc()) == StepPart::Gradient && isGradientTail(&op))
      onceAStep.insert(&op);
}

void StepParts::placeForward(const Blocks &blocks, ArrayRef<size_t> blocksOfPart) {
  size_t block = 0;
  for (auto [part, count] : llvm::enumerate(blocksOfPart))
    for (size_t i = 0; i < count; ++i, ++block)
      for (size_t at = blocks.firstOp[block]; at < blocks.endOp(block); ++at)
        if (Operation *op = blocks.trunk.ops[at]; !onceAStep.contains(op)) {
          partOfOp[op] = part;
          programs[op] = forward(part);
        }
}

namespace {
/// The last part that has an op with a given location, or, where no op has the location itself, with its node's name.
struct PartsByPlace {
  llvm::DenseMap<Location, size_t> byLocation;
  llvm::StringMap<size_t> byNode;

  void add(Location location, size_t part) {
    size_t &last = byLocation.try_emplace(location, part).first->second;
    last = std::max(last, part);
    if (std::string node = nodeName(location); !node.empty()) {
      size_t &lastOfNode = byNode.try_emplace(node, part).first->second;
      lastOfNode = std::max(lastOfNode, part);
    }
  }
  std::optional<size_t> find(Location gradient) const {
    if (auto fused = dyn_cast<FusedLoc>(gradient))
      for (Location of : fused.getLocations())
        if (auto found = byLocation.find(of); found != byLocation.end())
          return found->second;
    auto found = byNode.find(nodeName(gradient));
    return found == byNode.end() ? std::nullopt : std::optional(found->second);
  }
};
} // namespace

void StepParts::placeLater(const Blocks &blocks) {
  PartsByPlace places;
  for (Operation *op : blocks.trunk.ops)
    if (auto found = partOfOp.find(op); found != partOfOp.end())
      places.add(op->getLoc(), found->second);
  for (Operation *op : blocks.trunk.later) {
    if (onceAStep.contains(op))
      continue;
    // An op with gradients among its operands is no later than the earliest of their parts. An op whose node has no op
    // left is in the part of its operands.
    std::optional<size_t> earliestGradient, latestRead;
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      auto found = producer ? partOfOp.find(producer) : partOfOp.end();
      if (found == partOfOp.end())
        continue;
      latestRead = std::max(latestRead.value_or(0), found->second);
      if (programs.lookup(producer) >= parts)
        earliestGradient = std::min(earliestGradient.value_or(parts), found->second);
    }
    size_t part = earliestGradient.value_or(latestRead.value_or(parts - 1));
    if (std::optional<size_t> ofNode = places.find(op->getLoc()))
      part = std::min(*ofNode, earliestGradient.value_or(*ofNode));
    partOfOp[op] = part;
    programs[op] = backwardPrograms == BackwardPrograms::None ? forward(part) : backward(part);
  }
}

void StepParts::splitBackward(const Blocks &blocks) {
  for (Operation *op : llvm::reverse(blocks.trunk.later)) {
    auto found = partOfOp.find(op);
    if (found == partOfOp.end())
      continue;
    bool isApart = llvm::all_of(op->getUsers(), [&](Operation *user) {
      std::optional<Program> reader = programOf(user);
      return !reader || (*reader == weightGradient(found->second) && !nn::isProduct(user));
    });
    if (isApart)
      programs[op] = weightGradient(found->second);
  }
}

} // namespace hpc
