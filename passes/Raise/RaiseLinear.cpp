// Sinks reshapes that merge leading dims, op by op, until they meet the reshape that parts the dims again (and fold
// with it) or a result. Every step moves one such reshape from before an op to after it, so it ends.
#include "passes/Raise/Passes.h"
#include "passes/Raise/Simplify.h"

namespace hpc {

#define GEN_PASS_DEF_RAISELINEAR
#include "passes/Raise/Passes.h.inc"

using Shape = SmallVector<int64_t>;

/// The dims that a reshape merges into its result's first: [4, 33, 5, 8] -> [132, 40] merges [4, 33]. (What it does to
/// the others does not matter: [4, 33, 40] lies between.)
static std::optional<Shape> mergedDims(Value value) {
  auto reshape = value.getDefiningOp<nn::ReshapeOp>();
  if (!reshape || nn::shapeOf(value).empty() || nn::tensorType(value).getNumElements() == 0)
    return std::nullopt;
  ArrayRef<int64_t> from = nn::shapeOf(reshape.getOperand()), to = nn::shapeOf(value);
  if (to.size() >= from.size())
    return std::nullopt;
  // A way to leave the other dims as they are is the right one; else the shortest. A prefix that stays is not merged,
  // though its product may be the first dim: [2, 1, 4, 8] -> [2, 1, 32].
  for (bool keepsOthers : {true, false}) {
    int64_t product = from[0];
    for (size_t count = 2; count <= from.size(); ++count) {
      product *= from[count - 1];
      if (product == to[0] &&
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

/// The attributes of `op` when its first dim has become `1 + more` dims; nothing for an op that counts its dims in
/// another way.
static std::optional<NamedAttrList> attributesForMoreDims(Operation *op, int64_t more) {
  NamedAttrList attributes(op->getAttrDictionary());
  Builder builder(op->getContext());
  // Dims 0 .. more lead, each standing for itself as dim 0 did.
  auto shifted = [&](ArrayRef<int64_t> dims) {
    return llvm::map_to_vector(dims, [&](int64_t dim) { return dim + more; });
  };
  auto extended = [&](ArrayRef<int64_t> values, int64_t lead) {
    Shape all(size_t(more), lead);
    llvm::append_range(all, values);
    return builder.getDenseI64ArrayAttr(all);
  };
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    Shape permutation = llvm::to_vector(llvm::seq<int64_t>(0, more));
    llvm::append_range(permutation, shifted(transpose.getPermutation()));
    attributes.set("permutation", builder.getDenseI64ArrayAttr(permutation));
  } else if (auto reduce = dyn_cast<nn::ReduceOp>(op)) {
    attributes.set("axes", builder.getDenseI64ArrayAttr(shifted(reduce.getAxes())));
  } else if (auto slice = dyn_cast<nn::SliceOp>(op)) {
    if (slice.getStarts()[0] != 0 || slice.getSteps()[0] != 1 ||
        nn::shapeOf(slice.getOperand())[0] != nn::shapeOf(slice.getResult())[0])
      return std::nullopt;
    attributes.set("starts", extended(slice.getStarts(), 0));
    attributes.set("steps", extended(slice.getSteps(), 1));
  } else if (auto concat = dyn_cast<nn::ConcatOp>(op)) {
    attributes.set("axis", builder.getI64IntegerAttr(concat.getAxis() + more));
  } else if (!isa<nn::EmbeddingOp>(op)) {
    // Integers are dims; an attention has just four.
    for (NamedAttribute attribute : op->getAttrs())
      if (isa<DenseI64ArrayAttr>(attribute.getValue()) || attribute.getName() == "axis" ||
          attribute.getName() == "batch_dims")
        return std::nullopt;
    if (isa<nn::AttentionOp>(op))
      return std::nullopt;
  }
  return attributes;
}

namespace {
struct SinkMerge : RewritePattern {
  explicit SinkMerge(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || op->getNumResults() != 1 || isa<nn::ReshapeOp>(op) || llvm::none_of(op->getOperands(), mergedDims))
      return failure();
    // The first dim must pass through the op as one factor, and be nothing else anywhere.
    ShardingRule rule = ruled.getShardingRule();
    if (rule.results[0].empty() || rule.results[0][0].size() != 1)
      return failure();
    int factor = rule.results[0][0][0];
    if (rule.factors[factor].isInternal)
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
        lead ? attributesForMoreDims(op, int64_t(lead->size()) - 1) : std::nullopt;
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
