// A matmul reads its operands transposed for free: transposes of the last two dims become its flags.
// One that moves leading dims as well is split: the remaining copy keeps the last dim in place, so that it moves whole
// rows. Blocks that a gather has put one behind the other, and a transpose would put side by side, are multiplied where they lie.
#include "compiler/Accumulations.h"
#include "compiler/ImplicitWindows.h"
#include "compiler/Providers.h"
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

Value withShape(OpBuilder &builder, Location location, Value value, ArrayRef<int64_t> shape) {
  return nn::ReshapeOp::create(builder, location, RankedTensorType::get(shape, nn::tensorType(value).getElementType()), value);
}

/// [blocks, ..., size] <-> [..., blocks, size]: the order of a transpose that moves the blocks behind all rows, or in front.
bool movesBlocks(nn::TransposeOp transpose, bool toFront) {
  SmallVector<int64_t> order(transpose.getPermutation());
  if (order.size() < 3 || order.back() != int64_t(order.size()) - 1)
    return false;
  auto from = toFront ? order.begin() : order.end() - 2;
  if (*from != (toFront ? int64_t(order.size()) - 2 : 0))
    return false;
  order.erase(from);
  return llvm::is_sorted(order);
}

/// A weight that lies in memory as it is stored may be packed for its products, which read all of it.
bool isStored(Value value) { return isa_and_nonnull<nn::ParameterOp>(aliasRoot(value).getDefiningOp()); }

/// Whether a product gains by taking its left operand, of rows of `count` blocks, block by block.
bool takesBlocks(OpOperand &use, int64_t count, int64_t size) {
  auto product = dyn_cast<nn::MatmulOp>(use.getOwner());
  if (!product || use.getOperandNumber() != 0 || nn::shapeOf(use.get()).back() != count * size || nn::tensorType(product.getRhs()).getRank() != 2)
    return false;
  if (product.getTransposeLhs())
    return nn::tensorType(use.get()).getRank() == 2;
  // A sum that is read and written again for each further block must not be more than what the transpose would copy.
  RankedTensorType result = nn::tensorType(product.getResult());
  return !isStored(product.getRhs()) && result.getElementType().getIntOrFloatBitWidth() >= 32 && (count - 1) * result.getShape().back() <= count * size;
}

/// The products that read a value through reshapes; false if something else does.
bool collectReaders(Value value, int64_t count, int64_t size, SmallVectorImpl<nn::MatmulOp> &products) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    if (auto reshape = dyn_cast<nn::ReshapeOp>(use.getOwner()))
      return collectReaders(reshape.getResult(), count, size, products);
    if (!takesBlocks(use, count, size))
      return false;
    products.push_back(cast<nn::MatmulOp>(use.getOwner()));
    return true;
  });
}

/// Erases an op with its readers, which are reshapes and transposes that nothing else reads.
void eraseUnread(Operation *op) {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    eraseUnread(user);
  op->erase();
}

/// Takes the place of an op with one result, and its identity.
void replace(Operation *op, Value value) {
  Value old = op->getResult(0);
  value.setType(old.getType());
  setValueIds(value.getDefiningOp(), valueIdsOf(op));
  old.replaceAllUsesWith(value);
  op->erase();
}

/// What is summed over is in blocks: a product for each block, all in one sum.
void sumBlocks(nn::MatmulOp product, Value blocks, int64_t size) {
  OpBuilder builder(product);
  const Location location = product.getLoc();
  const int64_t count = nn::shapeOf(blocks)[0];
  auto part = [&](Value whole, unsigned dim, int64_t block) {
    SmallVector<int64_t> shape(nn::shapeOf(whole)), starts(shape.size(), 0), steps(shape.size(), 1);
    shape[dim] /= count;
    starts[dim] = block * shape[dim];
    auto type = RankedTensorType::get(shape, nn::tensorType(whole).getElementType());
    auto slice = nn::SliceOp::create(builder, location, type, whole, starts, steps);
    slice->setAttr(implicitAttrName, builder.getUnitAttr());
    return slice.getResult();
  };
  SmallVector<int64_t> rows(nn::shapeOf(product.getLhs()));
  rows.front() *= count;
  rows.back() = size;
  Value lhs = withShape(builder, location, blocks, rows), sum;
  for (int64_t block = 0; block < count; ++block) {
    Value term = nn::MatmulOp::create(builder, location, product.getType(), part(lhs, 0, block),
                                      part(product.getRhs(), product.getTransposeRhs() ? 1 : 0, block), false, product.getTransposeRhs());
    if (sum) {
      auto add = nn::AddOp::create(builder, location, product.getType(), sum, term);
      add->setAttr(addsInProductAttrName, builder.getUnitAttr());
      term = add.getResult();
    }
    sum = term;
  }
  replace(product, sum);
}

/// The rows of the result are in blocks: so is the result.
void multiplyBlocks(nn::MatmulOp product, Value blocks, int64_t size) {
  OpBuilder builder(product);
  const Location location = product.getLoc();
  const int64_t count = nn::shapeOf(blocks)[0], depth = nn::shapeOf(product.getLhs())[0];
  Value lhs = withShape(builder, location, blocks, {count, depth, size});
  ArrayRef<int64_t> result = nn::shapeOf(product.getResult());
  auto type = RankedTensorType::get({count, size, result[1]}, nn::tensorType(product.getResult()).getElementType());
  Value made = nn::MatmulOp::create(builder, location, type, lhs, product.getRhs(), true, product.getTransposeRhs());
  replace(product, withShape(builder, location, made, result));
}

/// Products read the blocks of a gather, which a transpose would put side by side.
void readBlocks(nn::TransposeOp transpose) {
  const int64_t count = nn::shapeOf(transpose.getOperand()).front(), size = nn::shapeOf(transpose.getOperand()).back();
  SmallVector<nn::MatmulOp> products;
  if (!movesBlocks(transpose, false) || !collectReaders(transpose.getResult(), count, size, products))
    return;
  for (nn::MatmulOp product : products)
    (product.getTransposeLhs() ? multiplyBlocks : sumBlocks)(product, transpose.getOperand(), size);
  eraseUnread(transpose);
}

/// A product whose columns a transpose would take apart for a scatter makes one block after the other.
void writeBlocks(dist::RawReduceScatterOp scatter) {
  auto transpose = scatter.getOperand().getDefiningOp<nn::TransposeOp>();
  if (!transpose || !movesBlocks(transpose, true))
    return;
  Value value = transpose.getOperand();
  while (value.hasOneUse() && value.getDefiningOp<nn::ReshapeOp>())
    value = value.getDefiningOp()->getOperand(0);
  auto product = value.getDefiningOp<nn::MatmulOp>();
  ArrayRef<int64_t> blocks = nn::shapeOf(transpose.getResult());
  if (!product || !product->hasOneUse() || !transpose->hasOneUse() || product.getTransposeLhs() || !product.getTransposeRhs() ||
      nn::tensorType(product.getRhs()).getRank() != 2 || nn::shapeOf(value).back() != blocks.front() * blocks.back() || isStored(product.getRhs()))
    return;
  OpBuilder builder(scatter);
  const Location location = product.getLoc();
  SmallVector<int64_t> result(nn::shapeOf(value)), rhs(result.size() + 1, 1);
  result.back() = blocks.back();
  result.insert(result.begin(), blocks.front());
  rhs.front() = blocks.front();
  rhs[rhs.size() - 2] = blocks.back();
  rhs.back() = nn::shapeOf(product.getRhs()).back();
  auto type = RankedTensorType::get(result, nn::tensorType(value).getElementType());
  Value made = nn::MatmulOp::create(builder, location, type, product.getLhs(), withShape(builder, location, product.getRhs(), rhs), false, true);
  scatter.getOperandMutable().set(withShape(builder, location, made, blocks));
  eraseUnread(product);
}

struct FoldTransposesPass : impl::FoldTransposesBase<FoldTransposesPass> {
  void runOnOperation() override {
    SmallVector<Operation *> collectives;
    getOperation().walk([&](CollectiveOpInterface op) { collectives.push_back(op); });
    for (Operation *op : collectives) {
      if (auto scatter = dyn_cast<dist::RawReduceScatterOp>(op))
        writeBlocks(scatter);
      for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
        if (auto transpose = dyn_cast<nn::TransposeOp>(user); transpose && isa<dist::RawAllGatherOp>(op))
          readBlocks(transpose);
    }
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
