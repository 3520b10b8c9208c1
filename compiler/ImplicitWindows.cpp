// From a window through reshapes to the products that read it, and back.
#include "compiler/ImplicitWindows.h"

#include "compiler/ElementType.h"
#include "compiler/Providers.h"

namespace hpc {

/// Sizes and counts of a window, the last dims of its result.
static std::pair<ArrayRef<int64_t>, ArrayRef<int64_t>> extentsOf(nn::WindowOp op) {
  ArrayRef<int64_t> shape = nn::shapeOf(op.getResult());
  const size_t dims = op.getStrides().size();
  return {shape.drop_back(dims).take_back(dims), shape.take_back(dims)};
}

static int64_t elementsOf(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

/// Whether products alone read `value`, which shows `window`, as [.., channels and offsets, positions].
static bool isReadByProducts(nn::WindowOp window, Value value) {
  auto [sizes, counts] = extentsOf(window);
  const int64_t size = elementsOf(sizes), positions = elementsOf(counts);
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    if (isBufferAlias(use.getOwner()))
      return isReadByProducts(window, use.getOwner()->getResult(0));
    auto matmul = dyn_cast<nn::MatmulOp>(use.getOwner());
    ArrayRef<int64_t> shape = nn::shapeOf(value);
    return matmul && use.getOperandNumber() == 1 && matmul.getLhs() != value && shape.back() == positions &&
           shape[shape.size() - 2] % size == 0;
  });
}

/// Whether all that a pad adds are zeros round the dims along which the window moves.
static bool isPaddingOf(nn::PadOp pad, nn::WindowOp window) {
  auto value = dyn_cast<FloatAttr>(pad.getValue());
  const size_t leading = pad.getLow().size() - window.getStrides().size();
  auto isNone = [&](ArrayRef<int64_t> sizes) {
    return llvm::all_of(sizes.take_front(leading), [](int64_t size) { return size == 0; }) &&
           llvm::all_of(sizes, [](int64_t size) { return size >= 0; });
  };
  return value && value.getValue().isPosZero() && isNone(pad.getLow()) && isNone(pad.getHigh());
}

void markImplicitWindows(Block &block) {
  Attribute mark = UnitAttr::get(block.getParentOp()->getContext());
  for (auto window : block.getOps<nn::WindowOp>()) {
    const bool isEmpty = nn::tensorType(window.getResult()).getNumElements() == 0;
    // A matrix of one row would be a vector, for which there are better ways.
    if (!isEmpty && isFloat(dtypeOf(window.getResult().getType())) && !window->use_empty() &&
        isReadByProducts(window, window.getResult()))
      window->setAttr(implicitAttrName, mark);
  }
  for (auto pad : block.getOps<nn::PadOp>())
    if (!pad->use_empty() && llvm::all_of(pad->getUsers(), [&](Operation *user) {
          auto window = dyn_cast<nn::WindowOp>(user);
          return window && isImplicit(window) && isPaddingOf(pad, window);
        }))
      pad->setAttr(implicitAttrName, mark);
}

bool isSeenAsWindows(Value value) {
  if (!value)
    return false;
  for (Operation *op = value.getDefiningOp(); op && isBufferAlias(op); op = op->getOperand(0).getDefiningOp())
    if (isImplicit(op))
      return true;
  return false;
}

std::optional<plan::Windows> implicitWindowsOf(nn::MatmulOp op) {
  Value value = op.getRhs();
  while (Operation *maker = value.getDefiningOp()) {
    if (!isBufferAlias(maker))
      return std::nullopt;
    if (isa<nn::WindowOp>(maker))
      break;
    value = maker->getOperand(0);
  }
  auto window = value.getDefiningOp<nn::WindowOp>();
  if (!window)
    return std::nullopt;
  auto [sizes, counts] = extentsOf(window);
  const size_t dims = sizes.size();
  auto pad = window.getOperand().getDefiningOp<nn::PadOp>();
  if (pad && !isImplicit(pad))
    pad = nullptr;
  ArrayRef<int64_t> rows = nn::shapeOf(op.getRhs());
  plan::Windows windows;
  windows.channels = rows[rows.size() - 2] / elementsOf(sizes);
  windows.image = nn::shapeOf(pad ? pad.getOperand() : window.getOperand()).take_back(dims).vec();
  windows.sizes = sizes.vec();
  windows.counts = counts.vec();
  windows.strides = window.getStrides().vec();
  windows.dilations = window.getDilations().vec();
  windows.low = pad ? pad.getLow().take_back(dims).vec() : std::vector<int64_t>(dims, 0);
  return windows;
}

} // namespace hpc
