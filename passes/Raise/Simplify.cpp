// One spelling for equal things. No rewrite here changes a rounding: each is exact for every number (x + 0 may change
// the sign of a zero).
#include "passes/Raise/Simplify.h"

#include "passes/Raise/Passes.h"
#include "passes/Raise/Scalars.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

#include <cmath>

namespace hpc {

#define GEN_PASS_DEF_SIMPLIFY
#include "passes/Raise/Passes.h.inc"

/// x op `neutral` -> x, where that changes no shape. `commutes`: also neutral op x.
template <typename Op>
static LogicalResult dropNeutral(Op op, PatternRewriter &rewriter, double neutral, bool commutes) {
  for (unsigned side : {1u, 0u}) {
    if (side == 0 && !commutes)
      break;
    Value other = op->getOperand(1 - side);
    std::optional<double> number = scalarOf(op->getOperand(side));
    if (!number || *number != neutral || other.getType() != op.getType())
      continue;
    rewriter.replaceOp(op, other);
    return success();
  }
  return failure();
}

static LogicalResult simplifyMul(nn::MulOp op, PatternRewriter &rewriter) { return dropNeutral(op, rewriter, 1, true); }
static LogicalResult simplifyAdd(nn::AddOp op, PatternRewriter &rewriter) { return dropNeutral(op, rewriter, 0, true); }
static LogicalResult simplifySub(nn::SubOp op, PatternRewriter &rewriter) {
  return dropNeutral(op, rewriter, 0, false);
}

/// x / 1 -> x; x / 2^n -> x * 2^-n, where both are normal numbers of every float type.
static LogicalResult simplifyDiv(nn::DivOp op, PatternRewriter &rewriter) {
  if (succeeded(dropNeutral(op, rewriter, 1, false)))
    return success();
  std::optional<double> number = scalarOf(op.getRhs());
  int exponent = 0;
  if (!number || !isa<FloatType>(getElementTypeOrSelf(op.getType())) ||
      std::abs(std::frexp(*number, &exponent)) != 0.5 || std::abs(exponent) > 13 ||
      op.getLhs().getType() != op.getType())
    return failure();
  rewriter.replaceOpWithNewOp<nn::MulOp>(op, op.getLhs(),
                                         makeScalar(rewriter, op.getRhs().getLoc(), op.getLhs(), 1 / *number));
  return success();
}

/// pow(x, 1) -> x, pow(x, 2) -> x * x.
static LogicalResult simplifyPow(nn::PowOp op, PatternRewriter &rewriter) {
  std::optional<double> exponent = scalarOf(op.getRhs());
  if (!exponent || op.getLhs().getType() != op.getType())
    return failure();
  if (*exponent == 1)
    rewriter.replaceOp(op, op.getLhs());
  else if (*exponent == 2)
    rewriter.replaceOpWithNewOp<nn::MulOp>(op, op.getLhs(), op.getLhs());
  else
    return failure();
  return success();
}

/// A selection by a constant condition is the selected operand.
static LogicalResult dropDecidedSelect(nn::SelectOp op, PatternRewriter &rewriter) {
  std::optional<double> condition = scalarOf(op.getCondition());
  Value chosen = condition && *condition != 0 ? op.getOnTrue() : op.getOnFalse();
  if (!condition || chosen.getType() != op.getType())
    return failure();
  rewriter.replaceOp(op, chosen);
  return success();
}

static LogicalResult dropIdentityCast(nn::CastOp op, PatternRewriter &rewriter) {
  if (op.getOperand().getType() != op.getType())
    return failure();
  rewriter.replaceOp(op, op.getOperand());
  return success();
}

static LogicalResult joinTransposes(nn::TransposeOp op, PatternRewriter &rewriter) {
  auto inner = op.getOperand().getDefiningOp<nn::TransposeOp>();
  if (!inner)
    return failure();
  SmallVector<int64_t> permutation;
  for (int64_t dim : op.getPermutation())
    permutation.push_back(inner.getPermutation()[dim]);
  rewriter.replaceOpWithNewOp<nn::TransposeOp>(op, inner.getOperand(), permutation);
  return success();
}

/// The value whose last two dims `value` is a transpose of; null if there is none.
static Value transposedInLastTwo(Value value) {
  auto op = value.getDefiningOp<nn::TransposeOp>();
  int64_t rank = op ? int64_t(op.getPermutation().size()) : 0;
  if (rank < 2)
    return {};
  for (auto [index, dim] : llvm::enumerate(op.getPermutation())) {
    int64_t expected = int64_t(index) == rank - 1 ? rank - 2 : int64_t(index) == rank - 2 ? rank - 1 : int64_t(index);
    if (dim != expected)
      return {};
  }
  return op.getOperand();
}

/// A swap of the last two dims moves past a reshape that keeps both; two swaps cancel.
static LogicalResult joinTransposesPastReshape(nn::TransposeOp op, PatternRewriter &rewriter) {
  Value swapped = transposedInLastTwo(op.getResult());
  auto reshape = swapped ? swapped.getDefiningOp<nn::ReshapeOp>() : nn::ReshapeOp();
  Value inner = reshape ? transposedInLastTwo(reshape.getOperand()) : Value();
  if (!inner ||
      nn::shapeOf(reshape.getOperand()).take_back(2) != nn::shapeOf(reshape.getResult()).take_back(2))
    return failure();
  rewriter.replaceOpWithNewOp<nn::ReshapeOp>(op, op.getType(), inner);
  return success();
}

static LogicalResult absorbTransposes(nn::MatmulOp op, PatternRewriter &rewriter) {
  Value lhs = transposedInLastTwo(op.getLhs()), rhs = transposedInLastTwo(op.getRhs());
  if (!lhs && !rhs)
    return failure();
  rewriter.replaceOpWithNewOp<nn::MatmulOp>(op, op.getType(), lhs ? lhs : op.getLhs(), rhs ? rhs : op.getRhs(),
                                            op.getTransposeLhs() != bool(lhs), op.getTransposeRhs() != bool(rhs));
  return success();
}

/// Whether a value is its own index along `dim`.
static bool isIndexAlong(Value value, uint64_t dim) {
  while (auto op = value.getDefiningOp<nn::BroadcastOp>()) // keeps the dims that it does not stretch
    value = op.getOperand();
  auto iota = value.getDefiningOp<nn::IotaOp>();
  return iota && iota.getDim() == dim && iota.getStart() == 0 && iota.getStep() == 1 && !iota.getOffset();
}

/// A gather whose indices begin with their own place in a dim (x[arange(batch), last]) has one batch dim more, which
/// may be cut.
static LogicalResult findBatchDim(nn::GatherNdOp op, PatternRewriter &rewriter) {
  auto indices = op.getIndices().getDefiningOp<nn::ConcatOp>();
  ArrayRef<int64_t> data = nn::shapeOf(op.getData()), shape = nn::shapeOf(op.getIndices());
  uint64_t batch = op.getBatchDims(), last = shape.size() - 1;
  if (!indices || indices.getAxis() != last || indices.getOperands().size() < 2 || batch >= last ||
      data[batch] != shape[batch])
    return failure();
  Value first = indices.getOperands()[0];
  if (nn::shapeOf(first)[last] != 1 || !isIndexAlong(first, batch))
    return failure();
  SmallVector<Value> rest(indices.getOperands().drop_front());
  Value others = rest[0];
  if (rest.size() > 1) {
    SmallVector<int64_t> fewer(shape);
    --fewer[last];
    others = nn::ConcatOp::create(rewriter, indices.getLoc(), nn::tensorType(op.getIndices()).clone(fewer), rest, last);
  }
  rewriter.replaceOpWithNewOp<nn::GatherNdOp>(op, op.getType(), op.getData(), others, batch + 1);
  return success();
}

/// A slice that lies in one part of a concatenation is a slice of that part: the new keys of all keys.
static LogicalResult sliceOnePart(nn::SliceOp op, PatternRewriter &rewriter) {
  auto concat = op.getOperand().getDefiningOp<nn::ConcatOp>();
  if (!concat || nn::tensorType(op.getResult()).getNumElements() == 0)
    return failure();
  const uint64_t axis = concat.getAxis();
  int64_t first = op.getStarts()[axis], last = first + op.getSteps()[axis] * (nn::shapeOf(op.getResult())[axis] - 1);
  for (Value part : concat.getOperands()) {
    const int64_t size = nn::shapeOf(part)[axis];
    if (std::min(first, last) >= 0 && std::max(first, last) < size) {
      SmallVector<int64_t> starts(op.getStarts());
      starts[axis] = first;
      rewriter.replaceOpWithNewOp<nn::SliceOp>(op, op.getType(), part, starts, op.getSteps());
      return success();
    }
    first -= size;
    last -= size;
  }
  return failure();
}

/// Parts without elements: the past of a sequence that begins.
static LogicalResult dropEmptyParts(nn::ConcatOp op, PatternRewriter &rewriter) {
  SmallVector<Value> parts;
  llvm::copy_if(op.getOperands(), std::back_inserter(parts), [&](Value part) { return nn::shapeOf(part)[op.getAxis()] != 0; });
  if (parts.size() == op.getOperands().size() || parts.empty())
    return failure();
  if (parts.size() == 1)
    rewriter.replaceOp(op, parts[0]);
  else
    rewriter.replaceOpWithNewOp<nn::ConcatOp>(op, op.getType(), parts, op.getAxis());
  return success();
}

void populateSimplifyPatterns(RewritePatternSet &patterns) {
  patterns.add(simplifyMul);
  patterns.add(simplifyAdd);
  patterns.add(simplifySub);
  patterns.add(simplifyDiv);
  patterns.add(simplifyPow);
  patterns.add(dropDecidedSelect);
  patterns.add(dropIdentityCast);
  patterns.add(joinTransposes);
  patterns.add(joinTransposesPastReshape);
  patterns.add(absorbTransposes);
  patterns.add(findBatchDim);
  patterns.add(sliceOnePart);
  patterns.add(dropEmptyParts);
}

LogicalResult rewriteToTheEnd(ModuleOp module, RewritePatternSet &&patterns) {
  GreedyRewriteConfig config;
  config.enableConstantCSE(false);
  return applyPatternsGreedily(module, std::move(patterns), config);
}

namespace {
struct Simplify : impl::SimplifyBase<Simplify> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateSimplifyPatterns(patterns);
    if (failed(rewriteToTheEnd(getOperation(), std::move(patterns))))
      return signalPassFailure();
    // Equal ops are one op, so that the matchers may compare values.
    DominanceInfo dominance(getOperation());
    IRRewriter rewriter(&getContext());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  }
};
} // namespace

} // namespace hpc
