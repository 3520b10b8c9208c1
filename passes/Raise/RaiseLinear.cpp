// Moves reshapes that merge leading dims down, op by op, until they meet the reshape that splits the dims again (and
// fold with it) or a result. Every step moves one such reshape from before an op to after it, so it ends.
#include "passes/Raise/Passes.h"
#include "passes/Raise/Simplify.h"

namespace hpc {

#define GEN_PASS_DEF_RAISELINEAR
#include "passes/Raise/Passes.h.inc"

using Shape = SmallVector<int64_t>;

/// The dims that a reshape merges into its result's first: [4, 33, 5, 8] -> [132, 40] merges [4, 33]. (Its effect on
/// the others does not matter: [4, 33, 40] lies between.)
static std::optional<Shape> mergedDims(Value value) {
  auto reshape = value.getDefiningOp<nn::ReshapeOp>();
  if (!reshape || nn::shapeOf(value).empty() || nn::tensorType(value).getNumElements() == 0)
    return std::nullopt;
  ArrayRef<int64_t> from = nn::shapeOf(reshape.getOperand()), to = nn::shapeOf(value);
  if (to.size() >= from.size())
    return std::nullopt;
  // A merge that leaves the other dims alone is preferred; otherwise the shortest. A prefix that stays is not merged,
  // though its product may be the first dim: [2, 1, 4, 8] -> [2, 1, 32].
  for (bool keepsOthers : {true, false}) {
    int64_t product = from[0];
    for (size_t count = 2; count <= from.size(); ++count) {
      product *= from[count - 1];
      // Dropping dims of size 1 before four others merges nothing: q, k and v of a split [3, B, H, S, D] have their batch.
      bool onlyDrops = llvm::count_if(from.take_front(count), [](int64_t size) { return size != 1; }) <= 1;
      if (product == to[0] && !(onlyDrops && to.size() >= 4) &&
          (keepsOthers ? from.drop_front(count) == to.drop_front() : from.take_front(count) != to.take_front(count)))
        return Shape(from.take_front(count));
    }
  }
  return std::nullopt;
}

/// A type whose first dim is replaced by `lead`.
static RankedTensorType withLead(Value value, ArrayRef<int64_t> lead) {
  Shape shape(lead);
  llvm::append_range(shape, nn::shapeOf(value).drop_front());
  return RankedTensorType::get(shape, nn::tensorType(value).getElementType());
}

namespace {
struct SinkMerge : RewritePattern {
  explicit SinkMerge(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    auto leading = dyn_cast<LeadingDimsOpInterface>(op);
    if (!ruled || !leading || op->getNumResults() != 1 || llvm::none_of(op->getOperands(), mergedDims))
      return failure();
    // The first dim must pass through the op as one factor that treats its elements alike, and be nothing else
    // anywhere.
    ShardingRule rule = ruled.getShardingRule();
    if (rule.results[0].empty() || rule.results[0][0].size() != 1)
      return failure();
    int factor = rule.results[0][0][0];
    if (rule.factors[factor].isInternal || !rule.factors[factor].canCut)
      return failure();
    std::optional<Shape> lead;
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
      for (auto [dim, factors] : llvm::enumerate(dims)) {
        if (!llvm::is_contained(factors, factor))
          continue;
        if (dim != 0 || factors.size() != 1)
          return failure();
        if (!lead)
          lead = mergedDims(operand);
      }
    std::optional<NamedAttrList> attributes =
        lead ? leading.attributesForMoreDims(int64_t(lead->size()) - 1) : std::nullopt;
    if (!attributes)
      return failure();

    SmallVector<Value> operands;
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands)) {
      bool hasFactor = !dims.empty() && llvm::is_contained(dims[0], factor);
      operands.push_back(
          hasFactor ? nn::ReshapeOp::create(rewriter, operand.getLoc(), withLead(operand, *lead), operand) : operand);
    }
    OperationState state(op->getLoc(), op->getName(), operands, TypeRange(withLead(op->getResult(0), *lead)),
                         *attributes);
    Operation *split = rewriter.create(state);
    rewriter.replaceOpWithNewOp<nn::ReshapeOp>(op, op->getResult(0).getType(), split->getResult(0));
    return success();
  }
};

struct RaiseLinear : impl::RaiseLinearBase<RaiseLinear> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateSimplifyPatterns(patterns);
    patterns.add<SinkMerge>(&getContext());
    if (failed(rewriteToTheEnd(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
