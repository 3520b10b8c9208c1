// A matmul reads its operands transposed for free: transposes of the last two dims become its flags.
// One that moves leading dims as well is split: the remaining copy keeps the last dim in place, so that it moves whole
// rows.
#include "passes/Kernels/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_FOLDTRANSPOSES
#include "passes/Kernels/Passes.h.inc"

namespace {
/// The operand of a transpose without its swap of the last two dims, or null when it has none.
Value unswapped(OpBuilder &builder, Value operand) {
  auto transpose = operand.getDefiningOp<nn::TransposeOp>();
  if (!transpose)
    return {};
  SmallVector<int64_t> order(transpose.getPermutation());
  int64_t rank = int64_t(order.size());
  // The swap leaves rows whole only if the last dim of the source becomes second to last.
  if (rank < 2 || order[rank - 2] != rank - 1)
    return {};
  std::swap(order[rank - 2], order[rank - 1]);
  if (llvm::is_sorted(order))
    return transpose.getOperand();
  SmallVector<int64_t> shape;
  for (int64_t dim : order)
    shape.push_back(nn::shapeOf(transpose.getOperand())[dim]);
  auto type = RankedTensorType::get(shape, nn::tensorType(operand).getElementType());
  builder.setInsertionPoint(transpose);
  return nn::TransposeOp::create(builder, transpose.getLoc(), type, transpose.getOperand(), order);
}

struct FoldTransposesPass : impl::FoldTransposesBase<FoldTransposesPass> {
  void runOnOperation() override {
    getOperation().walk([&](nn::MatmulOp matmul) {
      OpBuilder builder(matmul);
      auto fold = [&](OpOperand &operand, bool isTransposed, function_ref<void(bool)> set) {
        Operation *old = operand.get().getDefiningOp();
        Value source = unswapped(builder, operand.get());
        if (!source)
          return;
        operand.set(source);
        set(!isTransposed);
        if (old->use_empty())
          old->erase();
      };
      fold(matmul.getLhsMutable(), matmul.getTransposeLhs(), [&](bool flag) { matmul.setTransposeLhs(flag); });
      fold(matmul.getRhsMutable(), matmul.getTransposeRhs(), [&](bool flag) { matmul.setTransposeRhs(flag); });
    });
  }
};
} // namespace
} // namespace hpc
