// Groups become nn.fused ops: isolated, with clones of ops that cost nothing, under names that equal regions share.
#include "compiler/Location.h"
#include "passes/Kernels/Fusion/AttentionFusion.h"
#include "passes/Kernels/Fusion/FusionGroups.h"
#include "passes/Kernels/KernelName.h"
#include "passes/Kernels/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_FUSEREGIONS
#include "passes/Kernels/Passes.h.inc"

namespace {
using kernels::FusionGroup;
using kernels::FusionRole;
using kernels::FusionRoles;

/// Names like `softmax_2x3x33x33_0`: equal regions share one, in the order in which they are met.
class Symbols {
public:
  explicit Symbols(std::string prefix) : prefix(std::move(prefix)) {}

  std::string find(nn::FusedOp region, std::string base) {
    base.insert(0, prefix);
    auto &known = regions[base];
    for (auto [number, other] : llvm::enumerate(known))
      if (kernels::areEqual(region, other))
        return base + "_" + std::to_string(number);
    known.push_back(region);
    return base + "_" + std::to_string(known.size() - 1);
  }

private:
  const std::string prefix;
  std::map<std::string, std::vector<nn::FusedOp>> regions;
};

/// The name of a region, for people: its last composite, whole or as the last reduction is marked, else its last op.
std::string baseName(const FusionGroup &group, ArrayRef<Value> results) {
  std::string name = group.ops.back()->getName().stripDialect().str();
  for (Operation *op : group.ops)
    if (accessOf(op) == Access::Composite)
      name = op->getName().stripDialect().str();
    else if (auto composite = kernels::kernelNameOf(op); composite && isa<nn::ReduceOp>(op))
      name = composite.getValue().str();
  // The last of several results names the region.
  ArrayRef<int64_t> shape = nn::shapeOf(results.back());
  name += "_" + (shape.empty()
                     ? "scalar"
                     : llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }), "x"));
  return name;
}

class RegionBuilder {
public:
  RegionBuilder(const FusionGroup &group, const FusionRoles &roles) : group(group), roles(roles) {}

  nn::FusedOp build(Symbols &symbols) {
    SmallVector<Value> results = group.results();
    Operation *last = group.ops.back();
    OpBuilder builder(last->getContext());
    // 1. The body; values that are not cloned become operands.
    for (Operation *op : group.ops)
      clone(op);
    SmallVector<Value> yielded;
    SmallVector<Type> types;
    SmallVector<Location> locations;
    for (Value result : results) {
      yielded.push_back(mapping.lookup(result));
      types.push_back(result.getType());
    }
    for (Operation *op : llvm::reverse(group.ops))
      locations.push_back(op->getLoc());
    // 2. The op around it, where the last of the group stood; the block is sorted when all groups are built.
    builder.setInsertionPointAfter(last);
    auto region = nn::FusedOp::create(builder, builder.getFusedLoc(locations), types, "", operands);
    region.getBody().push_back(body.release());
    builder.setInsertionPointToEnd(&region.getBody().front());
    nn::YieldOp::create(builder, region.getLoc(), yielded);
    region.setSymbol(symbols.find(region, baseName(group, results)));
    // 3. Readers outside take the region's results; except for ops that will be cloned, so that they do not wait for an
    // output that is only computed on request.
    for (auto [old, result] : llvm::zip_equal(results, region.getResults())) {
      Operation *op = old.getDefiningOp();
      const bool isRepeated = roles.of(op) == FusionRole::Cloned && accessOf(op) == Access::Elementwise;
      old.replaceUsesWithIf(result, [&](OpOperand &use) {
        FusionRole reader = roles.of(use.getOwner());
        return !group.members.contains(use.getOwner()) &&
               (!isRepeated || reader == FusionRole::Fixed || reader == FusionRole::Alias);
      });
    }
    return region;
  }

private:
  Value inRegion(Value value) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (op && (group.contains(op) || roles.of(op) == FusionRole::Cloned)) {
      clone(op);
      return mapping.lookup(value);
    }
    operands.push_back(value);
    Value argument = body->addArgument(value.getType(), value.getLoc());
    mapping.map(value, argument);
    return argument;
  }
  void clone(Operation *op) {
    if (op->getNumResults() && mapping.contains(op->getResult(0)))
      return;
    for (Value operand : op->getOperands())
      inRegion(operand);
    Operation *copy = op->clone(mapping);
    kernels::removeKernelName(copy);
    body->push_back(copy);
  }

  const FusionGroup &group;
  const FusionRoles &roles;
  std::unique_ptr<Block> body = std::make_unique<Block>();
  IRMapping mapping;
  SmallVector<Value> operands;
};

/// A region is at the place of its group's last op, which may be after a reader. An op moves in front of its first
/// reader, and nothing else moves: an order by readiness alone would run ops that wait for nobody, as forward's
/// repetition for a gradient, long before their results are read, and keep the results all that time.
void orderByNeed(Block &block) {
  SmallVector<Operation *> before;
  for (Operation &op : block)
    before.push_back(&op);
  DenseSet<Operation *> placed;
  for (Operation *op : before) {
    SmallVector<Operation *> open{op};
    while (!open.empty()) {
      Operation *next = open.back();
      if (placed.contains(next)) {
        open.pop_back();
        continue;
      }
      size_t waiting = open.size();
      for (Value operand : llvm::reverse(next->getOperands())) {
        Operation *producer = operand.getDefiningOp();
        if (producer && producer->getBlock() == &block && !placed.contains(producer))
          open.push_back(producer);
      }
      if (open.size() > waiting)
        continue;
      placed.insert(next);
      next->moveBefore(&block, block.end());
      open.pop_back();
    }
  }
}

void fuseBlock(Block &block, Symbols &symbols) {
  kernels::fuseAttention(block, [&](nn::FusedOp region, const std::string &base) {
    region.setSymbol(symbols.find(region, base));
  });
  FusionRoles roles(block);
  for (const FusionGroup &group : kernels::formGroups(block, roles)) {
    if (group.results().empty())
      continue; // dead
    RegionBuilder(group, roles).build(symbols);
  }
  // Ops that moved into regions have no readers left.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.use_empty() && isPure(&op) && roles.of(&op) != FusionRole::Fixed)
      op.erase();
  orderByNeed(block);
}

struct FuseRegionsPass : impl::FuseRegionsBase<FuseRegionsPass> {
  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<nn::FusedOp>(op))
        return WalkResult::skip();
      if (isa<func::FuncOp, pipe::StageOp>(op))
        for (Block &block : op->getRegion(0))
          blocks.push_back(&block);
      return WalkResult::advance();
    });
    auto prefix = getOperation()->getAttrOfType<StringAttr>(kernels::kernelPrefixAttrName);
    Symbols symbols(prefix ? prefix.str() : "");
    for (Block *block : blocks)
      fuseBlock(*block, symbols);
    getOperation().walk(kernels::removeKernelName);
  }
};
} // namespace
} // namespace hpc
