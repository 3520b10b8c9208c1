// A product reads windows where the image lies, and a depthwise convolution is one. For the host alone: the products of
// devices read memory, and there a region that computes its windows is better.
#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/ElementType.h"
#include "compiler/ImplicitWindows.h"
#include "compiler/ModuleAttributes.h"
#include "passes/Kernels/Fusion/FusionRoles.h"
#include "passes/Kernels/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_MULTIPLYWINDOWS
#include "passes/Kernels/Passes.h.inc"

namespace {
RankedTensorType typeLike(Value value, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, nn::tensorType(value).getElementType());
}

int64_t elementsOf(ArrayRef<int64_t> shape) { return ShapedType::getNumElements(shape); }

/// The window of which a value is a reshape and the only reader, or null.
nn::WindowOp soleWindow(Value value) {
  while (value.hasOneUse()) {
    if (auto window = value.getDefiningOp<nn::WindowOp>())
      return window;
    auto reshape = value.getDefiningOp<nn::ReshapeOp>();
    if (!reshape)
      return {};
    value = reshape.getOperand();
  }
  return {};
}

/// sum over offsets of [batch, group, 1, offsets.., positions..] * [group, out, offsets.., 1..], as the import makes a
/// depthwise convolution, becomes [group, out, offsets] * [batch, group, offsets, positions].
void multiplyDepthwise(nn::ReduceOp sum) {
  auto product = sum.getOperand().getDefiningOp<nn::MulOp>();
  if (sum.getKind() != ReduceKind::Sum || !product || !product->hasOneUse() ||
      !nn::tensorType(product.getResult()).getElementType().isF32())
    return;
  nn::WindowOp window = soleWindow(product.getLhs());
  ArrayRef<int64_t> windows = nn::shapeOf(product.getLhs()), weight = nn::shapeOf(product.getRhs());
  if (!window || windows.size() < 5 || windows.size() % 2 == 0 || weight.size() + 1 != windows.size())
    return;
  const size_t dims = window.getStrides().size();
  ArrayRef<int64_t> moved = nn::shapeOf(window.getResult()).take_back(2 * dims), offsets = moved.take_front(dims),
                    positions = moved.take_back(dims);
  auto areOnes = [](ArrayRef<int64_t> sizes) { return llvm::all_of(sizes, [](int64_t size) { return size == 1; }); };
  if (windows.size() != 3 + 2 * dims || windows[2] != 1 || windows.drop_front(3) != moved || weight[0] != windows[1] ||
      weight.slice(2, dims) != offsets || !areOnes(weight.take_back(dims)) || elementsOf(windows) == 0 || elementsOf(weight) == 0 ||
      sum.getAxes() != ArrayRef<int64_t>(llvm::to_vector(llvm::seq<int64_t>(3, int64_t(3 + dims)))))
    return;
  OpBuilder builder(sum);
  const int64_t k = elementsOf(offsets), n = elementsOf(positions);
  auto reshaped = [&](Value value, ArrayRef<int64_t> shape) {
    return Value(nn::ReshapeOp::create(builder, sum.getLoc(), typeLike(value, shape), value));
  };
  Value matrix = reshaped(product.getRhs(), {weight[0], weight[1], k}),
        columns = reshaped(product.getLhs(), {windows[0], windows[1], k, n});
  Value result = nn::MatmulOp::create(builder, sum.getLoc(), typeLike(columns, {windows[0], weight[0], weight[1], n}), matrix, columns,
                                      false, false);
  sum.getResult().replaceAllUsesWith(
      nn::ReshapeOp::create(builder, sum.getLoc(), cast<RankedTensorType>(sum.getResult().getType()), result));
  sum.erase();
  product.erase();
}

/// Whether products alone read `value`, which shows `window`, as [.., channels and offsets, positions].
bool isReadByProducts(nn::WindowOp window, Value value) {
  auto [sizes, counts] = extentsOf(window);
  ArrayRef<int64_t> shape = nn::shapeOf(value);
  return llvm::all_of(value.getUses(), [&, sizes = sizes, counts = counts](OpOperand &use) {
    Operation *user = use.getOwner();
    auto fill = dyn_cast<dist::FillTailOp>(user);
    if (isa<nn::ReshapeOp>(user) || (fill && kernels::isExactExtent(fill)))
      return isReadByProducts(window, user->getResult(0));
    return isa<nn::MatmulOp>(user) && use.getOperandNumber() == 1 && user->getOperand(0) != value && shape.back() == elementsOf(counts) &&
           shape[shape.size() - 2] % elementsOf(sizes) == 0;
  });
}

/// Whether a pad only adds zeros around the dims along which the window moves.
bool isPaddingOf(nn::PadOp pad, nn::WindowOp window) {
  auto value = dyn_cast<FloatAttr>(pad.getValue());
  const size_t leading = pad.getLow().size() - window.getStrides().size();
  auto isNone = [&](ArrayRef<int64_t> sizes) {
    return llvm::all_of(sizes.take_front(leading), [](int64_t size) { return size == 0; }) &&
           llvm::all_of(sizes, [](int64_t size) { return size >= 0; });
  };
  return value && value.getValue().isPosZero() && isNone(pad.getLow()) && isNone(pad.getHigh());
}

void markImplicit(Block &block) {
  Attribute mark = UnitAttr::get(block.getParentOp()->getContext());
  for (auto window : block.getOps<nn::WindowOp>())
    if (nn::tensorType(window.getResult()).getNumElements() > 0 && isFloat(dtypeOf(window.getResult().getType())) &&
        !window->use_empty() && isReadByProducts(window, window.getResult()))
      window->setAttr(implicitAttrName, mark);
  for (auto pad : block.getOps<nn::PadOp>())
    if (!pad->use_empty() && llvm::all_of(pad->getUsers(), [&](Operation *user) {
          auto window = dyn_cast<nn::WindowOp>(user);
          return window && isImplicit(window) && isPaddingOf(pad, window);
        }))
      pad->setAttr(implicitAttrName, mark);
}

struct MultiplyWindowsPass : impl::MultiplyWindowsBase<MultiplyWindowsPass> {
  void runOnOperation() override {
    if (targetOf(getOperation()) != hostTarget)
      return;
    getOperation().walk([](nn::ReduceOp sum) { multiplyDepthwise(sum); });
    getOperation().walk([](Operation *op) {
      if (isa<func::FuncOp, pipe::StageOp>(op))
        for (Block &block : op->getRegion(0))
          markImplicit(block);
    });
  }
};
} // namespace
} // namespace hpc
