// From a window through reshapes to the products that read it, and back.
#include "compiler/ImplicitWindows.h"

#include "compiler/ElementType.h"
#include "compiler/Providers.h"

namespace hpc {

WindowExtents extentsOf(nn::WindowOp op) {
  ArrayRef<int64_t> shape = nn::shapeOf(op.getResult());
  const size_t dims = op.getStrides().size();
  return {shape.drop_back(dims).take_back(dims), shape.take_back(dims)};
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
  windows.channels = rows[rows.size() - 2] / ShapedType::getNumElements(sizes);
  windows.image = nn::shapeOf(pad ? pad.getOperand() : window.getOperand()).take_back(dims).vec();
  windows.sizes = sizes.vec();
  windows.counts = counts.vec();
  windows.strides = window.getStrides().vec();
  windows.dilations = window.getDilations().vec();
  windows.low = pad ? pad.getLow().take_back(dims).vec() : std::vector<int64_t>(dims, 0);
  return windows;
}

} // namespace hpc
