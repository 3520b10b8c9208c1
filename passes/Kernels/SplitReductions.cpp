// A reduction with too few results to occupy many threads becomes two: partial results of a tree that depends on the
// shape alone, then their reduction. So the order of a sum never depends on the threads.
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/ModuleAttributes.h"
#include "passes/Kernels/Elements/ColumnRegion.h"
#include "passes/Kernels/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "passes/Kernels/Passes.h.inc"

namespace {
constexpr int64_t enoughItems = 32;   // as many independent items serve any host
constexpr int64_t leastOfPartial = 64; // elements that a partial result must save the second reduction
// Sums down columns, whose partial results fusion computes together with the rows (RegionShape's ColumnSum): one
// thread then computes a block of rows, and its sums are written beside the rows. Of a device, a block of threads does
// so, of which a card runs some hundreds at a time; a program that is for a host too has the host's blocks.
struct Blocks {
  int64_t fewest, most, rows, fewestRows;
};
constexpr Blocks ofHost = {8, 64, 32, 8}, ofDevice = {8, 512, 16, 8};

RankedTensorType typeLike(Value value, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, nn::tensorType(value).getElementType());
}

/// Largest divisor of `count` that makes enough items of `items`, each of at least leastOfPartial elements; 1 if none.
int64_t partialsOf(int64_t count, int64_t items) {
  int64_t wanted = std::min((enoughItems + items - 1) / items, count / leastOfPartial);
  for (int64_t parts = wanted; parts > 1; --parts)
    if (count % parts == 0)
      return parts;
  return 1;
}

/// The number of equal blocks of `count` rows, with as nearly the wanted number of rows each as possible; 0 if they cannot
/// be divided.
int64_t blocksOf(int64_t count, const Blocks &limits) {
  const int64_t wanted = std::clamp(count / limits.rows, limits.fewest, limits.most);
  for (int64_t blocks = wanted; blocks >= limits.fewest; --blocks)
    if (count % blocks == 0 && count / blocks >= limits.fewestRows)
      return blocks;
  for (int64_t blocks = wanted + 1; blocks <= limits.most; ++blocks)
    if (count % blocks == 0 && count / blocks >= limits.fewestRows)
      return blocks;
  return 0;
}

/// Over adjacent leading dims: those of [a, r1, r2, b, c] become [a, parts, rest, b, c].
Value splitColumns(OpBuilder &builder, nn::ReduceOp op, Value operand, const Blocks &limits) {
  ArrayRef<int64_t> shape = nn::shapeOf(operand), axes = op.getAxes();
  if (axes.back() - axes.front() + 1 != int64_t(axes.size()))
    return {};
  int64_t count = 1, kept = 1, across = llvm::divideCeil(shape.back(), kernels::ColumnRegion::width);
  for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim)
    if (llvm::is_contained(axes, dim))
      count *= shape[dim];
    else if (dim + 1 < int64_t(shape.size()))
      kept *= shape[dim];
  if (kept == 0 || across == 0)
    return {};
  int64_t parts =
      op.getKind() == ReduceKind::Sum && kept < limits.fewest && shape.back() > 1 ? blocksOf(count, limits) : 0;
  if (parts == 0)
    parts = partialsOf(count, kept * across);
  if (parts == 1)
    return {};
  SmallVector<int64_t> regrouped(shape.take_front(axes.front()));
  regrouped.append({parts, count / parts});
  regrouped.append(shape.begin() + axes.back() + 1, shape.end());
  Value parted = nn::ReshapeOp::create(builder, op.getLoc(), typeLike(operand, regrouped), operand);
  Value partial = nn::ReduceOp::create(builder, op.getLoc(), op.getKind(), parted, {axes.front() + 1});
  return nn::ReduceOp::create(builder, op.getLoc(), op.getKind(), partial, {axes.front()});
}

/// Over the last dim and others: rows first.
Value splitRows(OpBuilder &builder, nn::ReduceOp op, Value operand) {
  ArrayRef<int64_t> axes = op.getAxes();
  int64_t results = nn::tensorType(op.getResult()).getNumElements(), count = nn::tensorType(operand).getNumElements();
  if (axes.size() == 1 || results == 0 || results >= enoughItems || count / results < leastOfPartial * leastOfPartial)
    return {};
  Value rows = nn::ReduceOp::create(builder, op.getLoc(), op.getKind(), operand, {axes.back()});
  return nn::ReduceOp::create(builder, op.getLoc(), op.getKind(), rows, axes.drop_back());
}

void split(nn::ReduceOp op, const Blocks &limits) {
  OpBuilder builder(op);
  // Partial results keep f32's precision.
  Type element = nn::tensorType(op.getOperand()).getElementType();
  Value operand = op.getOperand();
  Operation *widened = nullptr;
  if (element.isF16() || element.isBF16()) {
    auto wide = RankedTensorType::get(nn::shapeOf(operand), builder.getF32Type(), nn::tensorType(operand).getEncoding());
    operand = nn::CastOp::create(builder, op.getLoc(), wide, operand);
    widened = operand.getDefiningOp();
  }
  bool isByRow = op.getAxes().empty() || op.getAxes().back() == int64_t(nn::shapeOf(operand).size()) - 1;
  Value result = op.getAxes().empty() ? Value()
                 : isByRow            ? splitRows(builder, op, operand)
                                      : splitColumns(builder, op, operand, limits);
  if (!result) {
    if (widened)
      widened->erase();
    return;
  }
  // The value as it was: type, sharding, and its mark for --verify.
  RankedTensorType type = nn::tensorType(op.getResult());
  if (widened)
    result = nn::CastOp::create(builder, op.getLoc(), typeLike(op.getResult(), nn::shapeOf(result)), result);
  if (nn::shapeOf(result) == type.getShape())
    result.setType(type);
  else
    result = nn::ReshapeOp::create(builder, op.getLoc(), type, result);
  setValueIds(result.getDefiningOp(), {valueIdsOf(op).made, {}});
  op.getResult().replaceAllUsesWith(result);
  op.erase();
}

struct SplitReductionsPass : impl::SplitReductionsBase<SplitReductionsPass> {
  void runOnOperation() override {
    SmallVector<nn::ReduceOp> reductions;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<nn::FusedOp>(op))
        return WalkResult::skip();
      if (auto reduce = dyn_cast<nn::ReduceOp>(op))
        reductions.push_back(reduce);
      return WalkResult::advance();
    });
    for (nn::ReduceOp op : reductions)
      split(op, hasTarget(getOperation(), hostTarget) ? ofHost : ofDevice);
  }
};
} // namespace
} // namespace hpc
